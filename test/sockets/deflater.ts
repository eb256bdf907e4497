import { createDeflateRaw, constants as zlib } from 'node:zlib'

/** Resolves with the payload of a compressed message. */
export type Deflated = (text: string | Buffer) => Promise<Buffer>

/** permessage-deflate of one direction; with its context kept, each message may refer to earlier messages. */
export function deflater({ keepsContext = true, windowBits = 15 } = {}): Deflated {
  let stream = createDeflateRaw({ windowBits })
  return async (text) => {
    if (!keepsContext) stream = createDeflateRaw({ windowBits })
    const chunks: Buffer[] = []
    const take = (chunk: Buffer) => chunks.push(chunk)
    stream.on('data', take)
    stream.write(text)
    await new Promise<void>((resolve) => stream.flush(zlib.Z_SYNC_FLUSH, resolve))
    stream.off('data', take)
    return Buffer.concat(chunks).subarray(0, -4)
  }
}
