// Look-ups by names of data. A plain object also "has" the names of its prototype, such as `constructor`.

/** The member of an object by a name that may be any text. */
export function own<V>(object: Record<string, V>, name: string): V | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}
