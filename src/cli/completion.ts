import type { Command, Option } from 'commander'
import { UsageError } from './command.ts'
import { print } from './terminal.ts'

/** The shells ask the program itself: \`tollgate completion words -- keys cr\` prints what can follow. */
const SCRIPTS: Readonly<Record<string, string>> = {
  bash: `_tollgate() {
  local cur="\${COMP_WORDS[COMP_CWORD]}"
  COMPREPLY=($(compgen -W "$(tollgate completion words -- "\${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)" -- "$cur"))
}
complete -o default -F _tollgate tollgate
`,
  zsh: `#compdef tollgate
_tollgate() {
  local -a found
  found=(\${(f)"$(tollgate completion words -- "\${(@)words[2,CURRENT-1]}" 2>/dev/null)"})
  compadd -- $found || _files
}
compdef _tollgate tollgate
`,
  fish: `complete -c tollgate -a '(tollgate completion words -- (commandline -opc)[2..] 2>/dev/null)'
`,
}

const HELP = `
Add to the start file of your shell:
  bash: eval "$(tollgate completion bash)"
  zsh:  eval "$(tollgate completion zsh)"
  fish: tollgate completion fish | source`

export function register(command: Command, load: (words: readonly string[]) => Promise<Command>): void {
  command
    .argument('<shell>', Object.keys(SCRIPTS).join(', '))
    .argument('[words...]')
    .addHelpText('after', HELP)
    .action(async (shell: string, words: readonly string[]) => {
      if (shell === 'words')
        return await print(
          wordsAfter(await load(words), words)
            .map((word) => `${word}\n`)
            .join(''),
        )
      const script = SCRIPTS[shell]
      if (script === undefined) throw new UsageError(`The shell must be ${Object.keys(SCRIPTS).join(', ')}.`)
      await print(script)
    })
}

/** The subcommands and options that may follow. After an option that needs a value, its choices. */
function wordsAfter(program: Command, words: readonly string[]): readonly string[] {
  const isVisible = (option: Option) => !option.hidden
  let command = program
  for (const word of words) command = command.commands.find((each) => each.name() === word) ?? command
  const options = command.options.filter(isVisible)
  const last = options.find((option) => option.long === words.at(-1))
  if (last?.required) return last.argChoices ?? []
  const names = command.commands.map((each) => each.name())
  return [...names, ...options.flatMap(({ long }) => long ?? [])]
}
