interface ChoicesProps<Option extends string> {
  /** The subject of the choice, for screen readers. */
  readonly title: string
  readonly options: readonly Option[]
  isChosen(option: Option): boolean
  onChoose(option: Option): void
}

/** A few words of which one is chosen, or several. */
export function Choices<Option extends string>({ title, options, isChosen, onChoose }: ChoicesProps<Option>) {
  return (
    <fieldset class="choice">
      <legend class="unseen">{title}</legend>
      {options.map((option) => (
        <button key={option} type="button" aria-pressed={isChosen(option)} onClick={() => onChoose(option)}>
          {option}
        </button>
      ))}
    </fieldset>
  )
}
