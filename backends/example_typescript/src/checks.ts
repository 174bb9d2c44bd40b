/** Checks of single fields. Each is given the field's path, so that its error can name it. */

import { aboveLimit, invalid } from './errors.js';
import { FRAME_BYTES, ID_BYTES } from './limits.js';

const TIME = /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(\.\d+)?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/;
const DATE = /^(\d{4})-(\d{2})-(\d{2})$/;

/** Text without U+0000 and within its limit; it may be empty. */
export function text(field: string, value: string, limitBytes = FRAME_BYTES): string {
  if (value.includes('\0')) {
    throw invalid(field, 'U+0000 is not allowed in text');
  }
  const size = Buffer.byteLength(value);
  if (size > limitBytes) {
    throw aboveLimit(field, size, limitBytes);
  }
  return value;
}

export function requiredText(field: string, value: string, limitBytes = FRAME_BYTES): string {
  if (value === '') {
    throw invalid(field, 'is required');
  }
  return text(field, value, limitBytes);
}

export const id = (field: string, value: string): string => requiredText(field, value, ID_BYTES);

/** Milliseconds since 1970 of an RFC 3339 time with an offset. */
export function moment(field: string, value: string): number {
  requiredText(field, value);
  const match = TIME.exec(value);
  const [hours, minutes, seconds] = [Number(match?.[4]), Number(match?.[5]), Number(match?.[6])];
  const [offsetHours, offsetMinutes] = [Number(match?.[9] ?? 0), Number(match?.[10] ?? 0)];
  if (
    match === null || !isDay(match) || hours > 23 || minutes > 59 || seconds > 60 || offsetHours > 23 ||
    offsetMinutes > 59
  ) {
    throw invalid(field, `expected an RFC 3339 time with an offset, got ${JSON.stringify(value.slice(0, 60))}`);
  }
  const offset = (match[8] === '-' ? -1 : 1) * (offsetHours * 60 + offsetMinutes);
  const day = Date.UTC(Number(match[1]), Number(match[2]) - 1, Number(match[3]));
  return day + ((hours * 60 + minutes - offset) * 60 + seconds + Number(match[7] ?? 0)) * 1000;
}

export function date(field: string, value: string): string {
  requiredText(field, value);
  const match = DATE.exec(value);
  if (match === null || !isDay(match)) {
    throw invalid(field, `expected a date YYYY-MM-DD, got ${JSON.stringify(value.slice(0, 60))}`);
  }
  return value;
}

function isDay(match: RegExpExecArray): boolean {
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])];
  const lastDay = new Date(Date.UTC(year, month, 0)).getUTCDate();
  return month >= 1 && month <= 12 && day >= 1 && day <= lastDay;
}
