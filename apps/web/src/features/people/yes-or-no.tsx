import { Icon } from '../../components/icon'

/** A tick or a dash in a table, with a word for who does not see it. */
export function YesOrNo({ isYes }: { isYes: boolean }) {
  return isYes ? (
    <span className="text-ready">
      <Icon name="check" />
      <span className="sr-only">yes</span>
    </span>
  ) : (
    <span className="text-ink-faint">
      <span aria-hidden="true">–</span>
      <span className="sr-only">no</span>
    </span>
  )
}
