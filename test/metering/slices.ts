import fc from 'fast-check'

interface Scanner<Answer> {
  write(chunk: Buffer): void
  end(): Answer
}

/** Chunk sizes of a body, used repeatedly; mostly small, so that splits fall within every token. */
export const pieceSizes = fc.array(
  fc.oneof({ weight: 4, arbitrary: fc.integer({ min: 1, max: 9 }) }, fc.integer({ min: 1, max: 700 })),
  { minLength: 1, maxLength: 8 },
)

/** Chunks share one buffer, overwritten after each `write`: a scanner that keeps a chunk reads garbage. */
export function inPieces<Answer>(
  scanner: Scanner<Answer>,
  bytes: Uint8Array,
  sizes: readonly number[],
): Answer {
  const memory = Buffer.alloc(Math.max(...sizes))
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const piece = bytes.subarray(at, at + (sizes[turn % sizes.length] ?? 1))
    memory.set(piece)
    scanner.write(memory.subarray(0, piece.length))
    memory.fill(0x22)
    at += piece.length
  }
  return scanner.end()
}

/** Changes of a few bytes: removed, inserted, replaced, repeated, or truncated. */
export const mutations = fc.array(
  fc.record({
    kind: fc.constantFrom('delete', 'delete', 'insert', 'insert', 'replace', 'replace', 'repeat', 'cut'),
    at: fc.noBias(fc.integer({ min: 0, max: 1 << 20 })),
    byte: fc.oneof(
      fc.constantFrom(...Buffer.from('"\\{}[],:-0e.tn \r\n\u0000/\'')),
      fc.integer({ min: 0, max: 255 }),
    ),
  }),
  { minLength: 1, maxLength: 3 },
)

type Mutation = typeof mutations extends fc.Arbitrary<(infer M)[]> ? M : never

export function mutate(bytes: Uint8Array, changes: readonly Mutation[]): Buffer {
  let now = Buffer.from(bytes)
  for (const { kind, at, byte } of changes) {
    const i = at % (now.length + 1)
    const [before, after] = [now.subarray(0, i), now.subarray(i)]
    const one = Buffer.from([byte])
    if (kind === 'delete') now = Buffer.concat([before, after.subarray(1)])
    else if (kind === 'insert') now = Buffer.concat([before, one, after])
    else if (kind === 'replace') now = Buffer.concat([before, one, after.subarray(1)])
    else if (kind === 'repeat') now = Buffer.concat([before, after.subarray(0, 12), after])
    else now = Buffer.from(before)
  }
  return now
}
