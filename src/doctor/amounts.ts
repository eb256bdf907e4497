const UNITS = ['B', 'KB', 'MB', 'GB', 'TB'] as const

export function inBytes(bytes: number): string {
  let amount = bytes
  let at = 0
  while (amount >= 1_000 && at < UNITS.length - 1) {
    amount /= 1_000
    at += 1
  }
  return `${at === 0 || amount >= 100 ? Math.round(amount) : amount.toFixed(1)} ${UNITS[at]}`
}

export function inMs(ms: number): string {
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
}

export function inTime(ms: number): string {
  const seconds = Math.round(ms / 1_000)
  if (seconds < 120) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  if (minutes < 120) return `${minutes} min`
  const hours = Math.round(minutes / 60)
  return hours < 48 ? `${hours} h` : `${Math.round(hours / 24)} days`
}

export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
