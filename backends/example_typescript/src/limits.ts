/** Sizes that the contract sets (SPEC.md LIM-1). At a limit everything works; above it a call is refused. */

export const FRAME_BYTES = 1024 * 1024;
export const RESPONSE_BYTES = 4 * 1024 * 1024;
export const TURN_TEXT_BYTES = 256 * 1024;
export const QUERY_TEXT_BYTES = 64 * 1024;
export const ID_BYTES = 128;
