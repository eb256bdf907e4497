/** Amounts of a column with the same number of decimals, so that their points stand below each other. */
export function alignAmounts(amounts: readonly string[], decimalsMin = 2): string[] {
  const decimals = amounts.reduce((most, amount) => Math.max(most, fractionOf(amount).length), decimalsMin)
  return amounts.map((amount) => withDecimals(amount, decimals))
}

/** An amount as the API writes it, with zeros behind it. No digit is ever taken away. */
export function withDecimals(amount: string, decimals: number): string {
  const [whole = ''] = amount.split('.')
  return `${whole}.${fractionOf(amount).padEnd(decimals, '0')}`
}

/** A count as the API writes it, with commas. */
export function shownCount(count: string): string {
  return /^\d+$/.test(count) ? BigInt(count).toLocaleString('en-US') : count
}

function fractionOf(amount: string): string {
  return amount.split('.')[1] ?? ''
}
