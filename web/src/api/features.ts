// What the page asks for in lists of rows.

/** Bytes of a value after which the server cuts it (`clip=`), with the full lengths in `_clipped`. */
export const CLIP_BYTES = 2048;
/** True if `fields=level` adds `_level`, the level from any source. */
export const HAS_LEVEL: boolean = false;

/** Parameters of a request for rows of a list. */
export const LIST_PARAMS: Record<string, string | number> = {
  clip: CLIP_BYTES,
  ...(HAS_LEVEL ? { fields: "level" } : {}),
};
