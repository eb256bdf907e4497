/** One page of a list: `limit` items after the item with the id `after`, or from the beginning. */
export function pageAfter<Item extends { readonly id: string }>(
  items: readonly Item[],
  after: string | null,
  limit: number,
): { page: Item[]; hasMore: boolean } {
  const start = after === null ? 0 : items.findIndex((item) => item.id === after) + 1
  return { page: items.slice(start, start + limit), hasMore: start + limit < items.length }
}
