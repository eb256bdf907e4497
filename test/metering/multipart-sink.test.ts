import assert from 'node:assert/strict'
import fc from 'fast-check'
import { MultipartScanner, type PartHead } from '../../src/metering/multipart-scanner.ts'
import { runs } from '../support/scale.ts'
import { test } from '../support/suite.ts'
import { inPieces, pieceSizes } from './slices.ts'

const piece = fc.oneof(
  fc.constantFrom('\r', '\n', '\r\n', '-', '--', '\r\n--', '\r\n--b', '\r\n--b', 'b1', '\r\n\r\n'),
  fc.string({ maxLength: 30 }),
)
const content = fc
  .array(piece, { maxLength: 12 })
  .map((pieces) => pieces.join(''))
  .filter((text) => !`\r\n${text}`.includes('--b0'))

interface Seen {
  readonly head: PartHead
  bytes: string
}

function watch(
  body: Buffer,
  sizes: readonly number[],
  wanted: (head: PartHead) => boolean,
): readonly Seen[] | null {
  const seen: Seen[] = []
  const sink = {
    open(head: PartHead) {
      seen.push({ head, bytes: '' })
      return wanted(head)
    },
    write(bytes: Buffer) {
      const last = seen.at(-1)
      if (last !== undefined) last.bytes += bytes.toString('latin1')
    },
  }
  const scan = inPieces(new MultipartScanner('b0', ['model'], sink), body, sizes)
  return scan.kind === 'form' ? seen : null
}

const part = (head: string, text: string) =>
  `--b0\r\nContent-Disposition: form-data; ${head}\r\n\r\n${text}\r\n`

test('a sink gets the bytes of exactly the unwatched parts, in any chunks', () => {
  fc.assert(
    fc.property(content, content, pieceSizes, (first, second, sizes) => {
      const text = `${part('name=x; filename="f"', first)}${part('name=model', 'm')}${part('name=y', second)}--b0--`
      const body = Buffer.from(text, 'utf8')
      const seen = watch(body, sizes, () => true)
      const bytes = (written: string) => Buffer.from(written).toString('latin1')
      assert.deepEqual(
        seen?.map((one) => [one.head.name, one.head.isFile, one.bytes]),
        [
          ['x', true, bytes(first)],
          ['y', false, bytes(second)],
        ],
      )
    }),
    { numRuns: runs(1000) },
  )
})

const heads: readonly [head: string, isFile: boolean, verbatim: boolean][] = [
  ['name=x', false, true],
  ['name=x; filename="f"', true, true],
  ["name=x; filename*=UTF-8''f", true, true],
  ['name=x; filename=f\r\nContent-Type: application/json', true, true],
  ['name=x; filename=f\r\nContent-Type: text/plain; charset="utf-8"', true, true],
  ['name=x; filename=f\r\nContent-Type: text/plain; charset=utf-16', true, false],
  ['name=x; filename=f\r\nContent-Type: text/plain; charset=utf-8x', true, false],
  ['name=x; filename=f\r\nContent-Transfer-Encoding: binary', true, true],
  ['name=x; filename=f\r\nContent-Transfer-Encoding: quoted-printable', true, false],
  ['name=x; filename=f\r\nContent-Encoding: gzip', true, false],
]
for (const [head, isFile, verbatim] of heads) {
  test(`a part with ${JSON.stringify(head)} is ${isFile ? 'a file' : 'not a file'}, ${verbatim ? 'verbatim' : 'encoded'}`, () => {
    const [seen] = watch(Buffer.from(`${part(head, 'x')}--b0--`), [100], () => true) ?? []
    assert.deepEqual([seen?.head.isFile, seen?.head.verbatim], [isFile, verbatim])
  })
}
