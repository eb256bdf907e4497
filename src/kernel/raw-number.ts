/** A number as its digits: JSON prints the text as it is, so that no double comes near it. */
export interface RawNumber {
  readonly rawJSON: string
}

/** TypeScript's library does not know JSON.rawJSON yet. It refuses what is not a JSON scalar. */
export function rawNumber(text: string): RawNumber {
  return (JSON as unknown as { rawJSON(text: string): RawNumber }).rawJSON(text)
}

/** Sums can pass what a double holds. */
export function rawInteger(value: bigint): RawNumber {
  return rawNumber(String(value))
}
