interface ButtonProps {
  readonly title: string
  /** The text for screen readers, if the title alone is not clear. */
  readonly label?: string | undefined
  readonly kind?: 'primary' | 'danger' | 'link' | undefined
  readonly isDisabled?: boolean
  onClick(): void
}

export function Button({ title, label, kind, isDisabled = false, onClick }: ButtonProps) {
  return (
    <button type="button" class={kind} aria-label={label} disabled={isDisabled} onClick={onClick}>
      {title}
    </button>
  )
}
