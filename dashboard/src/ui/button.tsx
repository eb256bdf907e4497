interface ButtonProps {
  readonly title: string
  readonly kind?: 'primary' | 'danger'
  readonly isDisabled?: boolean
  onClick(): void
}

/** A button with a word on it. */
export function Button({ title, kind, isDisabled = false, onClick }: ButtonProps) {
  return (
    <button type="button" class={kind} disabled={isDisabled} onClick={onClick}>
      {title}
    </button>
  )
}
