import type { Bucket, Usage } from '../api.ts'
import { count, plural } from '../format.ts'
import { Link } from '../router.tsx'
import figures from './figures.module.css'
import { Money } from './figures.tsx'
import s from './ranking.module.css'

export const READ_MAX = 2_000

interface RankingProps {
  readonly title: string
  readonly by: 'key' | 'model'
  readonly of: Usage | null
  readonly max: number
  readonly all: string | null
  /** Whether each row has a bar, relative to the first row. Otherwise it has the number of calls. */
  readonly hasBars?: boolean
  toOf(bucket: Bucket): string
}

/** The keys or models with the highest cost, as links. */
export function Ranking({ title, by, of: usage, max, all, hasBars = false, toOf }: RankingProps) {
  const isPart = usage?.has_more ?? false
  const buckets = isPart ? [] : (usage?.data ?? [])
  const top = buckets.toSorted((a, b) => b.cost_usd - a.cost_usd).slice(0, max)
  const most = top[0]?.cost_usd ?? 0
  return (
    <section aria-label={title}>
      <h2>
        {title} {all !== null && <Link to={all}>All</Link>}
      </h2>
      {isPart && <p class="quiet">There are more than {count(READ_MAX)}. Open Usage to see all of them.</p>}
      <ul class={s.ranking}>
        {top.map((bucket) => (
          <li key={toOf(bucket)}>
            <Link to={toOf(bucket)}>
              <span class="name">{(by === 'key' ? bucket.key_name : bucket.model) || 'no model'}</span>
              {hasBars ? (
                <span class={figures.bar}>
                  <span
                    class={figures.spent}
                    style={{ width: `${most === 0 ? 0 : (bucket.cost_usd / most) * 100}%` }}
                  />
                </span>
              ) : (
                <span class="quiet">{plural(bucket.requests, 'call')}</span>
              )}
              <Money usd={bucket.cost_usd} />
            </Link>
          </li>
        ))}
      </ul>
    </section>
  )
}
