import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { useCommand } from '../data.ts'
import { Button } from './button.tsx'
import { TextField } from './fields.tsx'
import { Failure } from './states.tsx'

interface DialogProps {
  readonly title: string
  readonly isWide?: boolean
  onClose(): void
  /** Is asked before Esc closes the dialog. */
  mayClose?(): boolean
  readonly children: ComponentChildren
}

/** A modal dialog: the browser traps the focus, closes it on Esc and gives the focus back. */
export function Dialog({ title, isWide = false, onClose, mayClose, children }: DialogProps) {
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
      class={isWide ? 'wide' : undefined}
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

interface DialogButtonProps {
  readonly title: string
  readonly kind?: 'primary' | 'danger'
  /** The dialog; `close` removes it. */
  children(close: () => void): ComponentChildren
}

/** A button that opens a dialog. */
export function DialogButton({ title, kind, children }: DialogButtonProps) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Button title={title} {...(kind === undefined ? {} : { kind })} onClick={() => setOpen(true)} />
      {isOpen && children(() => setOpen(false))}
    </>
  )
}

interface FormDialogProps {
  readonly title: string
  /** The label of the button. */
  readonly submit: string
  readonly isDangerous?: boolean
  readonly isReady?: boolean
  onClose(): void
  onSubmit(): Promise<void>
  readonly isWide?: boolean
  readonly children: ComponentChildren
}

/** A dialog with fields and one command. Enter sends it; a refusal of the API stands above the buttons. */
export function FormDialog({
  title,
  submit,
  isDangerous,
  isReady = true,
  isWide = false,
  onClose,
  onSubmit,
  children,
}: FormDialogProps) {
  const command = useCommand()
  return (
    <Dialog title={title} isWide={isWide} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          if (isReady && !command.isBusy) void command.run(onSubmit)
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

type ConfirmByNameProps = Omit<FormDialogProps, 'isDangerous' | 'isReady' | 'isWide'> & {
  readonly name: string
}

/** A dialog for commands that cannot be undone: the name has to be typed. */
export function ConfirmByName({ name, children, ...form }: ConfirmByNameProps) {
  const [typed, setTyped] = useState('')
  const label = (
    <>
      Type <b class="name">{name}</b> to confirm
    </>
  )
  return (
    <FormDialog {...form} isDangerous isReady={typed.trim() === name.trim()}>
      {children}
      <TextField label={label} value={typed} onInput={setTyped} />
    </FormDialog>
  )
}

/** A form that ends with a record, or is closed. */
export interface Ends<Made> {
  onClose(): void
  onDone(made: Made): void
}
