// What the server can do beyond the documented API of this version. Each becomes true with the server's change.

/** Characters of a value after which the server cuts it (`clip=`), with the full lengths in `_clipped`. 0 is off. */
export const CLIP_CHARS: number = 0;
/** True if `fields=level` adds `_level`, the level from any source. */
export const HAS_LEVEL: boolean = false;

/** Parameters of a request for rows of a list. */
export const LIST_PARAMS: Record<string, string | number> = {
  ...(CLIP_CHARS ? { clip: CLIP_CHARS } : {}),
  ...(HAS_LEVEL ? { fields: "level" } : {}),
};
