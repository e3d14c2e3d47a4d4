import { CopyLine } from '../../components/copy-line'
import { Notice } from '../../components/field'

/** Shown once; each of them signs in once in place of a code. */
export function BackupCodes({ codes }: { codes: string[] }) {
  return (
    <>
      <Notice tone="live">
        Keep these backup codes where you find them without your authenticator: they are shown this once, and each signs
        you in once.
      </Notice>
      <CopyLine label="Backup codes" text={codes.join(' ')} />
    </>
  )
}
