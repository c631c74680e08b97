// Who comes by a link of another page, or program, may bring a token, but no question: nobody else asks this log.
import { takeToken } from "./api.js";

takeToken();
location.replace("/");
