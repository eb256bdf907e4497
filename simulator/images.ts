import { crc32, deflateSync } from 'node:zlib'
import { seedFromText } from './chance.ts'

const side = 16

/** The makers of images, by format: a small square in a colour that follows from the prompt, or one white pixel. */
export const imageMakers: ReadonlyMap<string, (prompt: string) => Buffer> = new Map([
  ['png', paintPng],
  ['webp', () => Buffer.from('UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==', 'base64')],
  ['jpeg', () => Buffer.from(`${jpegHead}${'/'.repeat(86)}${jpegTail}`, 'base64')],
])

const jpegHead = '/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP'
const jpegTail = 'wgALCAABAAEBAREA/8QAFBABAAAAAAAAAAAAAAAAAAAAAP/aAAgBAQABPxD/2Q=='

function paintPng(prompt: string): Buffer {
  const colour = Buffer.alloc(4)
  colour.writeUInt32BE(seedFromText(prompt))
  const row = Buffer.alloc(1 + side * 3)
  for (let x = 0; x < side; x += 1) colour.copy(row, 1 + x * 3, 0, 3)
  const head = Buffer.alloc(13)
  head.writeUInt32BE(side, 0)
  head.writeUInt32BE(side, 4)
  // Eight bits each of red, green and blue.
  head.set([8, 2], 8)
  const pixels = deflateSync(Buffer.concat(Array.from({ length: side }, () => row)))
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    pngChunk('IHDR', head),
    pngChunk('IDAT', pixels),
    pngChunk('IEND', Buffer.alloc(0)),
  ])
}

function pngChunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  sum.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, sum])
}

/** Output tokens of one image, by quality and shape; other sizes in proportion. */
const tokensByQuality: ReadonlyMap<string, readonly [square: number, portrait: number, landscape: number]> =
  new Map([
    ['low', [272, 408, 400]],
    ['medium', [1_056, 1_584, 1_568]],
    ['high', [4_160, 6_240, 6_208]],
  ])

export const imageQualities: readonly string[] = [...tokensByQuality.keys()]

export function imageTokens(quality: string, width: number, height: number): number {
  const [square, portrait, landscape] = tokensByQuality.get(quality) ?? [1_056, 1_584, 1_568]
  const usual = width === height ? square : width < height ? portrait : landscape
  const usualPixels = width === height ? 1_024 * 1_024 : 1_024 * 1_536
  return Math.ceil((usual * width * height) / usualPixels)
}
