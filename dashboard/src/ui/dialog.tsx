import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { ApiError } from '../api.ts'
import { useCommand } from '../data.ts'
import { AMOUNT } from '../format.ts'
import { Failure } from './states.tsx'

/** A modal dialog: the browser traps the focus, closes it on Esc and gives the focus back. */
export function Dialog({
  title,
  onClose,
  mayClose,
  children,
}: {
  readonly title: string
  onClose(): void
  /** Is asked before Esc closes the dialog. */
  mayClose?(): boolean
  readonly children: ComponentChildren
}) {
  const dialog = useRef<HTMLDialogElement>(null)
  // The dialog opens before the next key is pressed, since that key belongs to the dialog.
  useLayoutEffect(() => {
    const element = dialog.current
    element?.showModal()
    return () => element?.close()
  }, [])
  return (
    <dialog
      ref={dialog}
      aria-labelledby="dialog-title"
      onCancel={(event) => {
        event.preventDefault()
        if (mayClose?.() ?? true) onClose()
      }}
    >
      <h2 id="dialog-title">{title}</h2>
      {children}
    </dialog>
  )
}

/** A dialog with fields and one command. Enter sends it; a refusal of the API is shown beside the field it names. */
export function FormDialog({
  title,
  submit,
  isDangerous,
  isReady = true,
  onClose,
  onSubmit,
  children,
}: {
  readonly title: string
  /** The label of the button. */
  readonly submit: string
  readonly isDangerous?: boolean
  readonly isReady?: boolean
  onClose(): void
  onSubmit(): Promise<void>
  children: ComponentChildren | ((error: ApiError | null) => ComponentChildren)
}) {
  const command = useCommand()
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          if (isReady && !command.isBusy) void command.run(onSubmit)
        }}
      >
        {typeof children === 'function' ? children(command.error) : children}
        {command.error !== null && <Failure error={command.error} />}
        <div class="actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button
            type="submit"
            class={isDangerous ? 'danger' : 'primary'}
            disabled={!isReady || command.isBusy}
          >
            {submit}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

/** A dialog for commands that cannot be undone: the name has to be typed. */
export function ConfirmByName({
  title,
  name,
  submit,
  onClose,
  onSubmit,
  children,
}: {
  readonly title: string
  readonly name: string
  readonly submit: string
  onClose(): void
  onSubmit(): Promise<void>
  readonly children: ComponentChildren
}) {
  const [typed, setTyped] = useState('')
  return (
    <FormDialog
      title={title}
      submit={submit}
      isDangerous
      isReady={typed.trim() === name.trim()}
      onClose={onClose}
      onSubmit={onSubmit}
    >
      {children}
      <Field
        label={
          <>
            Type <b class="name">{name}</b> to confirm
          </>
        }
      >
        {(id) => (
          <input
            id={id}
            value={typed}
            autoComplete="off"
            spellcheck={false}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        )}
      </Field>
    </FormDialog>
  )
}

let fields = 0

export function Field({
  label,
  hint,
  children,
}: {
  readonly label: ComponentChildren
  readonly hint?: ComponentChildren
  children(id: string): ComponentChildren
}) {
  const [id] = useState(() => `field-${++fields}`)
  return (
    <div class="field">
      <label htmlFor={id}>{label}</label>
      {children(id)}
      {hint !== undefined && <small class="quiet">{hint}</small>}
    </div>
  )
}

export function AmountField({
  label,
  hint,
  value,
  onInput,
}: {
  readonly label: string
  readonly hint?: string
  readonly value: string
  onInput(text: string): void
}) {
  return (
    <Field label={label} hint={hint}>
      {(id) => (
        <input
          id={id}
          inputMode="decimal"
          autoComplete="off"
          pattern={AMOUNT}
          title="An amount such as 50, $50 or 1,000.50, with at most nine decimals"
          value={value}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  )
}
