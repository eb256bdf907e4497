import { deflateSync } from 'node:zlib'

/**
 * A request for model `a` to servers that take deflate for the zlib format, and for model `b` to servers that take it for
 * bare deflate. Its first bytes are a zlib header and the head of a stored block, or only the head of a stored block.
 */
export function deflatedTwice(): Buffer {
  const ending = '","mod'
  const shared = '{"model":"a","x":"'.padEnd(0x200d - 2 - ending.length, 'x') + ending
  // Where bare deflate ends the first block and begins the last, zlib reads on and takes these bytes for letters of a name.
  const lastHead = Buffer.from([0x29, 0x3d, 0x40, 0xc2, 0xbf])
  const last = 'el":"b","y":"z"}'.padEnd(0x403d)
  const zlibData = Buffer.alloc(0xdff2, ' ')
  Buffer.concat([Buffer.from(shared), lastHead, Buffer.from(last)]).copy(zlibData)
  const zlibEnd = Buffer.from([0x01, 0x00, 0x00, 0xff, 0xff])
  const heads = Buffer.from([0x48, 0x0d, 0x20, 0xf2, 0xdf, 0x0d, 0x20])
  return Buffer.concat([heads, zlibData, zlibEnd, deflateSync(zlibData).subarray(-4)])
}
