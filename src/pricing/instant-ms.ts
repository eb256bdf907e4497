/** Prices change at an instant, and a bare date means its first one in UTC. */
export function instantMs(text: string): number {
  return Date.parse(text.includes('T') ? text : `${text}T00:00:00Z`)
}
