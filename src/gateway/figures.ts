import type { HeaderNames } from '../kernel/header-names.ts'
import { formatUsd, type Nanos } from '../kernel/money.ts'

/** What the client is told of a call's money. The balance is unknown while the store cannot be reached. */
export interface Figures {
  readonly costNanos: Nanos
  readonly listNanos: Nanos
  readonly balanceNanos: Nanos | null
}

/** Header or trailer lines, in the order in which the documentation lists them. */
export function figureLines(
  names: HeaderNames,
  figures: Figures | null,
  upstreamMs: number | null,
): string[] {
  const lines: string[] = []
  if (figures !== null) {
    lines.push(names.costUsd, formatUsd(figures.costNanos), names.listCostUsd, formatUsd(figures.listNanos))
  }
  if (upstreamMs !== null) lines.push(names.upstreamMs, String(upstreamMs))
  if (figures !== null && figures.balanceNanos !== null) {
    lines.push(names.balanceUsd, formatUsd(figures.balanceNanos))
  }
  return lines
}

/** What the `Trailer` header announces when the figures follow a stream. */
export function announcedTrailers(names: HeaderNames): string {
  return [names.costUsd, names.listCostUsd, names.upstreamMs, names.balanceUsd].join(', ')
}
