const formats = [
  { format: 'json', title: 'JSON', meaning: 'The boot with its critical path, for programs' },
  { format: 'csv', title: 'CSV', meaning: 'Critical path, phases and OS boot steps, for spreadsheets' },
  { format: 'otlp', title: 'OpenTelemetry', meaning: 'A trace (OTLP JSON), for collectors' },
  {
    format: 'perfetto',
    title: 'Perfetto',
    meaning: 'A trace for ui.perfetto.dev, which shows it in the browser and uploads nothing',
  },
]

/** The boot as files. */
export function BootDownloads({ bootId }: { bootId: string }) {
  return (
    <p className="flex flex-wrap items-center gap-x-4 gap-y-1 border-line border-t px-4 py-2.5 text-sm">
      <span className="text-ink-faint">Download this boot</span>
      {formats.map(({ format, title, meaning }) => (
        <a
          key={format}
          href={`/api/v1/boots/${bootId}/export?format=${format}`}
          download
          title={meaning}
          className="rounded text-ink underline decoration-line-strong underline-offset-4 hover:decoration-ink"
        >
          {title}
        </a>
      ))}
    </p>
  )
}
