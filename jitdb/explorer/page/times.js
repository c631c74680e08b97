// Times as people read them, always of a zone that is said.
import { state } from "./state.js";

const made = new Map();

export const zone = () => state.zone || "UTC";
export const localZone = () => Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

function parts(ms) {
  if (!made.has(zone())) {
    made.set(
      zone(),
      new Intl.DateTimeFormat("en-GB", {
        timeZone: zone(),
        hourCycle: "h23",
        year: "numeric",
        month: "short",
        day: "numeric",
        weekday: "short",
        hour: "2-digit",
        minute: "2-digit",
        second: "2-digit",
        fractionalSecondDigits: 3,
      }),
    );
  }
  return Object.fromEntries(
    made
      .get(zone())
      .formatToParts(ms)
      .map(({ type, value }) => [type, value]),
  );
}

const valid = (ms) => ms != null && Math.abs(ms) < 8.64e15;

export function clock(ms, digits = 3) {
  if (!valid(ms)) return "";
  const { hour, minute, second, fractionalSecond } = parts(ms);
  return `${hour}:${minute}` + (digits >= 1 ? `:${second}` : "") + (digits >= 3 ? `.${fractionalSecond}` : "");
}

export function day(ms, withYear = false) {
  if (!valid(ms)) return "";
  const found = parts(ms);
  return `${found.month} ${found.day}` + (withYear ? `, ${found.year}` : "");
}

export const isSameDay = (one, other) => day(one, true) === day(other, true);

/** From one time to another, as short as it can be said. */
export function span(low, high) {
  const fine = high - low < 120_000 ? (high - low < 2000 ? 3 : 1) : 0;
  const last = isSameDay(low, high - 1);
  const end = last && !isSameDay(low, high) ? "24:00" : clock(high, fine);
  const whole = clock(low, 0) === "00:00" && clock(high, 0) === "00:00" && high - low >= 8.64e7;
  if (whole) return isSameDay(low, high - 1) ? day(low) : `${day(low)} – ${day(high - 1)}`;
  return `${day(low)}, ${clock(low, fine)} – ${last ? "" : `${day(high)}, `}${end}`;
}

/** A label of an axis whose labels are this far apart. */
export function tick(ms, step) {
  if (step >= 28 * 8.64e7) return `${parts(ms).month} ${parts(ms).year}`;
  if (step >= 8.64e7) return day(ms);
  const text = clock(ms, step < 60_000 ? (step < 1000 ? 3 : 1) : 0);
  return text === "00:00" && step >= 3_600_000 ? day(ms) : text;
}

export const iso = (ms) => new Date(Math.round(ms)).toISOString().replace(".000Z", "Z");

/** How far the clocks of the zone are from UTC, in milliseconds. */
export function shift(ms) {
  const { year, month, day: date, hour, minute, second } = parts(ms);
  return Date.parse(`${date} ${month} ${year} ${hour}:${minute}:${second} UTC`) - Math.floor(ms / 1000) * 1000;
}
