/** Four steps of a waterfall in the colours of a boot, night to morning. */
export function LogoMark({ size = 20 }: { size?: number }) {
  const steps = [
    { x: 1, y: 2, width: 8, phase: 'firmware' },
    { x: 4, y: 6.5, width: 7, phase: 'nbp' },
    { x: 7, y: 11, width: 8, phase: 'loader' },
    { x: 10, y: 15.5, width: 9, phase: 'stage2' },
  ]
  return (
    <svg aria-hidden="true" width={size} height={size} viewBox="0 0 20 20" className="shrink-0">
      {steps.map(({ x, y, width, phase }) => (
        <rect key={phase} x={x} y={y} width={width} height={3} rx={1.5} fill={`var(--phase-${phase})`} />
      ))}
    </svg>
  )
}

export function Logo() {
  return (
    <span className="flex items-center gap-2 font-semibold text-base text-ink tracking-tight">
      <LogoMark />
      Bootfarm
    </span>
  )
}
