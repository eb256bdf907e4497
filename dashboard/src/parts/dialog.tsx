import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { useCommand } from '../data.ts'
import { Button } from './button.tsx'
import s from './dialog.module.css'
import { TextField } from './fields.tsx'
import { Failure } from './states.tsx'

interface DialogProps {
  readonly title: string
  readonly isWide?: boolean
  onClose(): void
  /** Called before Esc closes the dialog. */
  mayClose?(): boolean
  readonly children: ComponentChildren
}

/** A modal dialog. The browser traps the focus, closes the dialog on Esc and restores the focus. */
export function Dialog({ title, isWide = false, onClose, mayClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  // A layout effect, so that the dialog is open before the next key press.
  useLayoutEffect(() => {
    const element = dialog.current
    element?.showModal()
    return () => element?.close()
  }, [])
  return (
    <dialog
      ref={dialog}
      class={isWide ? `${s.dialog} ${s.wide}` : s.dialog}
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

/** The callbacks of a form: `onDone` gets the record that the form created or changed. */
export interface FormCallbacks<Made> {
  onClose(): void
  onDone(made: Made): void
}

interface DialogButtonProps<Made> {
  readonly title: string
  readonly label?: string
  readonly kind?: 'primary' | 'danger' | 'link'
  onDone(made: Made): void
  children(callbacks: FormCallbacks<Made>): ComponentChildren
}

export function DialogButton<Made>({ title, label, kind, onDone, children }: DialogButtonProps<Made>) {
  const [isOpen, setOpen] = useState(false)
  const onClose = () => setOpen(false)
  function finish(made: Made): void {
    onClose()
    onDone(made)
  }
  return (
    <>
      <Button title={title} label={label} kind={kind} onClick={() => setOpen(true)} />
      {isOpen && children({ onClose, onDone: finish })}
    </>
  )
}

interface FormDialogProps<Made> extends FormCallbacks<Made> {
  readonly title: string
  readonly submit: string
  readonly isDangerous?: boolean
  readonly isReady?: boolean
  /** Undefined: a field has a problem, and the form stays open. */
  onSubmit(): Promise<Made | undefined>
  readonly isWide?: boolean
  readonly children: ComponentChildren
}

export function FormDialog<Made>({
  title,
  submit,
  isDangerous,
  isReady = true,
  isWide = false,
  onClose,
  onSubmit,
  onDone,
  children,
}: FormDialogProps<Made>) {
  const command = useCommand()
  const form = useRef<HTMLFormElement>(null)
  async function finish(): Promise<void> {
    const made = await onSubmit()
    if (made !== undefined) onDone(made)
    else setTimeout(() => form.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus())
  }
  return (
    <Dialog title={title} isWide={isWide} onClose={onClose}>
      <form
        ref={form}
        onSubmit={(event) => {
          event.preventDefault()
          if (isReady && !command.isBusy) void command.run(finish)
        }}
      >
        {children}
        {command.error !== null && <Failure error={command.error} />}
        <div class="actions">
          <Button title="Cancel" onClick={onClose} />
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

interface DangerProps {
  /** What the command does: `Revoke`. */
  readonly verb: string
  /** To what: `this key`. */
  readonly noun: string
  /** The name of the record, which the user must type. */
  readonly name: string
  readonly title?: string
  readonly kind?: 'link'
  /** What follows from it. */
  readonly children: string
  run(): Promise<unknown>
  onDone(): void
}

/** A button for a command that cannot be undone. */
export function DangerButton({ verb, name, title = verb, kind, onDone, ...asked }: DangerProps) {
  const label = kind === undefined ? title : `${title} ${name}`
  return (
    <DialogButton title={title} label={label} kind={kind ?? 'danger'} onDone={onDone}>
      {(callbacks) => <ConfirmByName verb={verb} name={name} {...asked} {...callbacks} />}
    </DialogButton>
  )
}

type ConfirmProps = Omit<DangerProps, 'title' | 'kind' | 'onDone'> & FormCallbacks<unknown>

function ConfirmByName({ verb, noun, name, run, children, ...callbacks }: ConfirmProps) {
  const [typed, setTyped] = useState('')
  const isReady = typed.trim() === name.trim()
  const label = (
    <>
      Type <b class="name">{name}</b> to confirm
    </>
  )
  return (
    <FormDialog
      title={`${verb} ${noun}`}
      submit={verb}
      isDangerous
      isReady={isReady}
      onSubmit={run}
      {...callbacks}
    >
      <p>{children}</p>
      <TextField label={label} value={typed} onInput={setTyped} />
    </FormDialog>
  )
}
