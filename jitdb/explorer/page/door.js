// Who comes by a link of another page, or program, may ask what stands in it only together with a token: nobody else
// chooses what this log is asked.
import { takeToken } from "./api.js";

location.replace(takeToken() ? `/?${location.hash}` : "/"); // with the ? it is another address, and so is loaded
