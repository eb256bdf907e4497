/** Cuts out of a text what must neither be kept nor repeated. */
export type Redact = (text: string) => string

/**
 * Our own keys, which people put into paths, user agents and model names by mistake, are recognised by their form,
 * and stay recognisable by their beginning. Secrets of any other form are given.
 */
export function createRedact(servicePrefix: string, secrets: readonly string[] = []): Redact {
  const literals = secrets.map((secret) => secret.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  const pattern = new RegExp([`(${servicePrefix}_(?:live|admin)_)[0-9A-Za-z]+`, ...literals].join('|'), 'g')
  const cut = (text: string) =>
    text.replace(pattern, (_, shown: string | undefined) => `${shown ?? ''}[redacted]`)
  return (text) => {
    const plain = cut(text)
    if (!plain.includes('%')) return plain
    // A key whose underscores are encoded is still a key.
    const decoded = decode(plain)
    const clean = cut(decoded)
    return clean === decoded ? plain : clean
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
