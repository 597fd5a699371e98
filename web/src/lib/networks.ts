// Addresses and networks as conditions of the native language, which compares texts.

const OCTET = /^(?:\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])$/;

/** The octets of an address of IPv4, or null. */
function octetsOf(text: string): number[] | null {
  const parts = text.split(".");
  return parts.length === 4 && parts.every((part) => OCTET.test(part)) ? parts.map(Number) : null;
}

/** A regular expression for the addresses of a network of IPv4 in its usual form, such as `203.0.113.0/24`. */
function expressionOf(octets: number[], bits: number): string {
  const whole = octets.slice(0, bits >> 3).map((octet) => `${octet}\\.`);
  const rest = bits % 8;
  if (bits === 32) return `^${octets.join("\\.")}$`;
  if (!rest) return `^${whole.join("")}`;
  const size = 2 ** (8 - rest);
  const first = Math.floor(octets[bits >> 3]! / size) * size;
  const some = Array.from({ length: size }, (_, index) => first + index).join("|");
  return `^${whole.join("")}(?:${some})${bits > 24 ? "$" : "\\."}`;
}

/** The condition that a field is none of this address or network, or null if the text is neither. */
export function exceptAddress(field: string, text: string): string | null {
  const [address, length, ...more] = text.split("/") as [string, ...string[]];
  if (more.length) return null;
  const octets = octetsOf(address);
  if (length === undefined) {
    if (octets) return `${field}!=${address}`;
    return /^[0-9a-f:]*:[0-9a-f:.]*$/i.test(address) ? `${field}!=${JSON.stringify(address)}` : null;
  }
  const bits = /^\d{1,3}$/.test(length) ? Number(length) : NaN;
  if (octets && bits >= 1 && bits <= 32) return `${field}!~/${expressionOf(octets, bits)}/`;
  // Of IPv6 only networks whose groups are all written out.
  const groups = address.replace(/:+$/, "").split(":");
  const known = bits >= 16 && bits <= 112 && bits % 16 === 0 && groups.length === bits / 16;
  if (!known || !groups.every((group) => /^[1-9a-f][0-9a-f]{0,3}$/i.test(group))) return null;
  return `${field}!~/^${groups.join(":").toLowerCase()}:/`;
}
