import type { MissingPrice, PricedModel } from '../api.ts'
import { useResource } from '../data.ts'
import { count } from '../format.ts'
import { Button } from '../parts/button.tsx'
import { Snippet } from '../parts/copy.tsx'
import { Dialog, DialogButton } from '../parts/dialog.tsx'
import { actionColumn, nameColumn, Table, timeColumn } from '../parts/table.tsx'
import { SetPriceForm } from './set-price-form.tsx'

type Line = MissingPrice & { readonly id: string }

/** The row in which the gateway counts all names that no upstream offers. */
const OTHER = 'other'

interface MissingPricesProps {
  readonly models: readonly PricedModel[]
  onSet(): void
}

/** Models that were asked for and have no price. Nothing is shown if there are none. */
export function MissingPrices({ models, onSet }: MissingPricesProps) {
  const missing = useResource('/gateway/v1/prices/missing', {}, 30_000)
  const rows = (missing.value?.data ?? []).map((row): Line => ({ ...row, id: `${row.surface} ${row.model}` }))
  if (rows.length === 0) return null
  function finish(): void {
    missing.refresh()
    onSet()
  }
  return (
    <>
      <h2 class="bad">Missing prices</h2>
      <p class="quiet">
        Asked for in 30 days, or offered by a provider. Keys with limits cannot call them until they have a
        price.
      </p>
      <Table<Line>
        caption="Missing prices"
        rows={rows}
        columns={[
          nameColumn<Line>({
            title: 'Model',
            name: ({ model }) => (model === OTHER ? 'names that no provider offers' : model),
          }),
          { title: 'Refused', isFigure: true, cell: ({ refused }) => count(refused) },
          { title: 'Passed', isFigure: true, isMinor: true, cell: ({ passed }) => count(passed) },
          timeColumn('Last asked for', ({ last_at }) => last_at, { isMinor: true }),
          { title: 'Like', isMinor: true, cell: ({ closest }) => closest ?? <span class="quiet">–</span> },
          actionColumn<Line>(
            (row) =>
              row.model !== OTHER && (
                <span class="buttons">
                  <DialogButton
                    title="Set price"
                    kind="link"
                    label={`Set price of ${row.model}`}
                    onDone={finish}
                  >
                    {(callbacks) => (
                      <SetPriceForm
                        model={row.model}
                        provider={row.surface === 'messages' ? 'anthropic' : 'openai'}
                        like={models.find(({ id }) => id === row.closest)}
                        {...callbacks}
                      />
                    )}
                  </DialogButton>
                  {row.closest !== null && (
                    <DialogButton
                      title="Use as fallback"
                      kind="link"
                      label={`Use as fallback for ${row.model}`}
                      onDone={() => undefined}
                    >
                      {({ onClose }) => <FallbackDialog of={row} onClose={onClose} />}
                    </DialogButton>
                  )}
                </span>
              ),
          ),
        ]}
      />
    </>
  )
}

/** Fallbacks are configuration, the same on every node. */
function FallbackDialog({ of, onClose }: { readonly of: MissingPrice; onClose(): void }) {
  const line = JSON.stringify({ prices: { fallbacks: { [of.model]: of.closest } } }, null, 2)
  return (
    <Dialog title={`Use ${of.closest} as fallback`} onClose={onClose}>
      <p>
        Add this to <code>tollgate.json</code> of every node, and restart it. Calls to {of.model} are then
        charged like {of.closest} and flagged unpriced, until it has a price of its own.
      </p>
      <Snippet text={line} what="the setting" isCode />
      <div class="actions">
        <Button title="Close" kind="primary" onClick={onClose} />
      </div>
    </Dialog>
  )
}
