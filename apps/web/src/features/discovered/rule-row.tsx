import { Button } from '../../components/button'
import { Icon } from '../../components/icon'
import { actionText, conditionText, type Rule } from './rule-text'

interface RuleRowProps {
  /** From 1 on. */
  number: number
  count: number
  rule: Rule
  nameOf: (id: string) => string
  busy: boolean
  /** Absent for those who may only look. */
  onMove?: (by: -1 | 1) => void
  onEdit?: () => void
  onDelete?: () => void
}

export function RuleRow({ number, count, rule, nameOf, busy, onMove, onEdit, onDelete }: RuleRowProps) {
  const conditions = conditionText(rule.conditions)
  return (
    <li className="flex flex-wrap items-center gap-x-4 gap-y-2 border-line border-t px-4 py-3 first:border-t-0">
      <span className="w-5 text-right text-ink-faint">{number}</span>
      <div className="min-w-0 flex-1 basis-64">
        <p className="font-medium text-ink">{actionText(rule.action, nameOf)}</p>
        <p className="break-words text-ink-soft">
          {conditions.length === 0 ? 'All machines' : `When ${conditions.join(' and ')}`}
        </p>
      </div>
      {onMove && onEdit && onDelete && (
        <div className="flex items-center gap-1">
          <Move label={`Move rule ${number} up`} turned disabled={busy || number === 1} onClick={() => onMove(-1)} />
          <Move label={`Move rule ${number} down`} disabled={busy || number === count} onClick={() => onMove(1)} />
          <Button look="bare" className="h-7!" aria-label={`Edit rule ${number}`} onClick={onEdit}>
            Edit
          </Button>
          <Button look="bare" className="h-7!" aria-label={`Delete rule ${number}`} disabled={busy} onClick={onDelete}>
            Delete
          </Button>
        </div>
      )}
    </li>
  )
}

interface MoveProps {
  label: string
  turned?: boolean
  disabled: boolean
  onClick: () => void
}

function Move({ label, turned = false, disabled, onClick }: MoveProps) {
  return (
    <Button look="bare" className="h-7! px-2" aria-label={label} title={label} disabled={disabled} onClick={onClick}>
      <span className={turned ? '-rotate-90' : 'rotate-90'}>
        <Icon name="chevron" size={12} />
      </span>
    </Button>
  )
}
