import type { BilledCall, Call } from '../api.ts'
import { bytes, duration, exactTime, money } from '../format.ts'
import { costOf } from '../parts/call-table.tsx'
import { TimeBar } from '../parts/figures.tsx'
import s from './request-timeline.module.css'

interface Moment {
  readonly title: string
  readonly at?: string | null
  readonly note?: string
  readonly isUpstream?: boolean
}

const ENDINGS: Partial<Record<Call['state'], string>> = {
  settled: 'Settled',
  released: 'Released, nothing billed',
  interrupted: 'Interrupted',
}

function momentsOf(call: BilledCall): readonly Moment[] {
  const { state, started_at: at, ended_at, upstream_ms: upstream, overhead_ms: overhead } = call
  if (state === 'waiting') return [{ title: 'Waiting for a budget or credit', at }]
  const held = call.bill?.held_usd ?? 0
  const unused = held - costOf(call)
  const times = `${duration(upstream ?? 0)} upstream, ${duration(overhead ?? 0)} in the gateway`
  const ending = ENDINGS[state]
  return [
    { title: 'Admitted', at, note: `${bytes(call.bytes_in)} sent by the client` },
    ...(held > 0 ? [{ title: `Reserved ${money(held)}` }] : []),
    ...(upstream === null
      ? []
      : [
          {
            title: call.status === null ? 'Sent upstream' : `Upstream answered ${call.status}`,
            note: times,
            isUpstream: true,
          },
        ]),
    ending === undefined
      ? { title: state === 'deferred' ? 'Waiting for the cost' : 'In flight' }
      : {
          title: ending,
          at: ended_at,
          ...(state === 'settled' && held > 0 && unused > 0 ? { note: `${money(unused)} released` } : {}),
        },
    ...(call.credited ? [{ title: 'Credited back' }] : []),
  ]
}

export function Timeline({ of: call }: { readonly of: BilledCall }) {
  return (
    <section aria-label="Timeline">
      <h2>Timeline</h2>
      <ol class={s.timeline}>
        {momentsOf(call).map(({ title, at, note, isUpstream }) => (
          <li key={title}>
            {title}
            {at != null && (
              <time dateTime={at} title={exactTime(at)}>
                {exactTime(at).slice(11)}
              </time>
            )}
            {isUpstream && <TimeBar of={call} />}
            {note !== undefined && <span class="quiet">{note}</span>}
          </li>
        ))}
      </ol>
    </section>
  )
}
