// Editing of LogQL by clicks: filters of labels at the end of a query for lines.

const term = (name: string, value: string, negative: boolean) =>
  ` | ${name}${negative ? "!=" : "="}${JSON.stringify(value)}`;

/** True if a label can be written in a filter. */
export const isLabel = (name: string) => /^[A-Za-z_]\w*$/.test(name);

/** Says how a query has a filter already. */
export function stateOfLabel(query: string, name: string, value: string): "included" | "excluded" | null {
  if (query.includes(term(name, value, false))) return "included";
  return query.includes(term(name, value, true)) ? "excluded" : null;
}

/** Adds a filter in place of its opposite, or takes it back if it is there. */
export function toggleLabel(query: string, name: string, value: string, negative: boolean): string {
  const wanted = term(name, value, negative);
  if (query.includes(wanted)) return query.replace(wanted, () => "");
  return query.replace(term(name, value, !negative), () => "").trimEnd() + wanted;
}
