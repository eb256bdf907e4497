/** A pattern is an exact name, or the beginning of a name and a final `*`. */
export function matchesPattern(pattern: string, name: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern
}

/** The models that a text names. */
export interface FoundModels {
  readonly names: readonly string[]
  /** Why it may use other models too, as a sentence: keys with an allowlist are refused. Null: it uses no others. */
  readonly unknown: string | null
}

/** The models that a request can use, as far as its text shows. */
export interface NamedModels extends FoundModels {
  /** The input file of a batch. The database has its models if this key uploaded it here. */
  readonly batchFile: string | null
}

export const NO_MODELS: NamedModels = { names: [], unknown: null, batchFile: null }
