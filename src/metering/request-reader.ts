import { limits } from '../kernel/limits.ts'
import { codingOf, decodeCopy } from './decode-copy.ts'
import { JsonScanner } from './json-scanner.ts'
import { boundaryOf, MultipartScanner } from './multipart-scanner.ts'
import { REQUEST_MEMBERS, type RequestFacts } from './request-facts.ts'

/** Reads a request's body from its chunks as they pass. It looks, and can neither change nor stop anything. */
export interface RequestReader {
  /** A promise means: wait for it before the next chunk. */
  write(chunk: Buffer): Promise<void> | null
  end(): Promise<RequestFacts>
}

interface Scanner {
  write(chunk: Uint8Array): void
  end(): RequestFacts
}

/** Chooses the reader by what the request says of its body: a form is read as a form, all else as JSON. */
export function readerFor(
  contentType: string | undefined,
  contentEncoding: string | undefined,
): RequestReader {
  const scanner = scannerFor(contentType ?? '')
  const coding = codingOf(contentEncoding)
  if (coding === 'unknown') return unreadable('unknown_content_encoding')
  if (coding === 'identity') return readPlain(scanner)
  return readEncoded(scanner, coding.coding)
}

function readPlain(scanner: Scanner): RequestReader {
  return {
    write(chunk) {
      scanner.write(chunk)
      return null
    },
    end: async () => scanner.end(),
  }
}

function readEncoded(scanner: Scanner, coding: string): RequestReader {
  const decoder = decodeCopy(coding, limits.decodedBodyBytesMax, (bytes) => scanner.write(bytes))
  return {
    write: (chunk) => decoder.write(chunk),
    async end() {
      const state = await decoder.end()
      if (state === 'whole') return scanner.end()
      return { kind: 'unreadable', reason: state === 'corrupt' ? 'corrupt_content_encoding' : 'too_large' }
    },
  }
}

function unreadable(reason: string): RequestReader {
  return { write: () => null, end: async () => ({ kind: 'unreadable', reason }) }
}

function scannerFor(contentType: string): Scanner {
  if (/^\s*multipart\/form-data\b/i.test(contentType)) {
    const boundary = boundaryOf(contentType)
    if (boundary === null)
      return { write: () => {}, end: () => ({ kind: 'unreadable', reason: 'no_boundary' }) }
    const form = new MultipartScanner(boundary, REQUEST_MEMBERS)
    return {
      write: (chunk) => form.write(chunk),
      end() {
        const scan = form.end()
        return scan.kind === 'form' ? { kind: 'form', scan } : { kind: 'unreadable', reason: scan.reason }
      },
    }
  }
  const json = new JsonScanner(REQUEST_MEMBERS)
  return {
    write: (chunk) => json.write(chunk),
    end() {
      const scan = json.end()
      return scan.kind === 'object' ? { kind: 'json', scan } : { kind: 'unreadable', reason: scan.reason }
    },
  }
}
