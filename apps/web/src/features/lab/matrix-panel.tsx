import { Panel } from '../../components/page'
import { type Matrix, type SettingChoice, settingChoices } from './lab-draft'

interface MatrixPanelProps {
  matrix: Matrix
  onChange: (matrix: Matrix) => void
}

/** What to vary: the levels of each setting. */
export function MatrixPanel({ matrix, onChange }: MatrixPanelProps) {
  return (
    <Panel title="Settings to compare" aside="every combination of the selected values is one cell">
      <div className="grid gap-x-8 gap-y-5 lg:grid-cols-2">
        {settingChoices.map((choice) => (
          <Levels
            key={choice.setting}
            choice={choice}
            chosen={matrix[choice.setting] ?? []}
            onChange={(levels) => onChange({ ...matrix, [choice.setting]: levels })}
          />
        ))}
      </div>
    </Panel>
  )
}

interface LevelsProps {
  choice: SettingChoice
  chosen: string[]
  onChange: (levels: string[]) => void
}

function Levels({ choice: { setting, title, hint, levels }, chosen, onChange }: LevelsProps) {
  const hintId = `hint-of-${setting}`
  return (
    <fieldset aria-describedby={hintId} className="flex min-w-0 flex-col gap-1.5">
      <legend className="font-medium text-ink text-sm">{title}</legend>
      <p id={hintId} className="text-ink-soft text-xs">
        {hint}
      </p>
      <div className="flex flex-wrap gap-1.5">
        {levels.map(({ value, label }) => {
          const isChosen = chosen.includes(value)
          return (
            <label
              key={value}
              className="flex h-8 cursor-pointer items-center gap-2 rounded-md border border-line-strong px-2.5 text-ink text-sm hover:bg-hover has-checked:border-ink max-md:h-10"
            >
              <input
                type="checkbox"
                checked={isChosen}
                onChange={() => onChange(isChosen ? chosen.filter((one) => one !== value) : [...chosen, value])}
              />
              {label}
            </label>
          )
        })}
      </div>
    </fieldset>
  )
}
