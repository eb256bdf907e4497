/**
 * Headers that state something about the bytes of a body, and are wrong once a byte of it was changed, with the reason.
 * They go from the request when it was edited and from the reply when usage is cut out of it, trailers included.
 */
const OUTDATED_HEADERS: Readonly<Record<string, string>> = {
  'content-length': 'the length is another, and of a stream not known before its end',
  'content-md5': 'a digest of the bytes as they were (RFC 1864)',
  digest: 'a digest of the bytes as they were (RFC 3230)',
  'content-digest': 'a digest of the bytes as they were (RFC 9530)',
  etag: 'a strong entity tag promises these very bytes; a weak one promises their meaning, and stays',
  'repr-digest': 'a digest of the bytes as they were (RFC 9530)',
}

/** Whether a header line no longer holds for a body that was changed. Names in lower case. */
export function isOutdated(name: string, value: string): boolean {
  return name === 'etag' ? !/^\s*W\//.test(value) : Object.hasOwn(OUTDATED_HEADERS, name)
}
