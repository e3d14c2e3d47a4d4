/** Drawn on a 16-unit grid with one stroke width, so that they sit beside 13 px text. */
const paths = {
  overview: 'M2.5 9.5h4v4h-4zM2.5 2.5h4v4h-4zM9.5 2.5h4v7h-4zM9.5 12.5h4v1h-4z',
  device: 'M2.5 3.5h11v7h-11zM6 13.5h4M8 10.5v3',
  discovered: 'M2.5 10.5v-7h11v7M8 10.5a2 2 0 1 0 0 4 2 2 0 0 0 0-4zM6.8 6.2c.2-1.6 2.6-1.6 2.6 0 0 1-1.4 1-1.4 2',
  boot: 'M2.5 3.5h5M5 6.5h5M7.5 9.5h3M10 12.5h3.5',
  storm:
    'M2.5 2.5h3v3h-3zM6.5 2.5h3v3h-3zM10.5 2.5h3v3h-3zM2.5 6.5h3v3h-3zM6.5 6.5h3v3h-3zM10.5 6.5h3v3h-3zM2.5 10.5h3v3h-3zM6.5 10.5h3v3h-3z',
  explore: 'M2.5 13.5v-11M2.5 13.5h11M5 11.5v-2M5 7.5v-2M8 11.5v-5M11 11.5v-1M11 8.5v-5M8 4.5v-1',
  lab: 'M6 2.5h4M6.75 2.5v4l-4 6.5c-.3.6 0 1 .6 1h9.3c.6 0 .9-.4.6-1l-4-6.5v-4M4.9 10.5h6.2',
  finding: 'M2.5 12.5l3.5-4 3 2 4.5-6M10.5 4.5h3v3',
  fullScreen: 'M2.5 6v-3.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10',
  schedule: 'M8 14a5.75 5.75 0 1 0 0-11.5A5.75 5.75 0 0 0 8 14zM8 5v3.25l2.25 1.5',
  vdisk:
    'M2.5 4.5c0-1.1 2.46-2 5.5-2s5.5.9 5.5 2-2.46 2-5.5 2-5.5-.9-5.5-2zM2.5 4.5v7c0 1.1 2.46 2 5.5 2s5.5-.9 5.5-2v-7M2.5 8c0 1.1 2.46 2 5.5 2s5.5-.9 5.5-2',
  edge: 'M2.5 2.5h11v4h-11zM2.5 9.5h11v4h-11zM5 4.5h.01M5 11.5h.01M8 4.5h3M8 11.5h3',
  network: 'M6 2.5h4v3H6zM2.5 10.5h4v3h-4zM9.5 10.5h4v3h-4zM8 5.5V8M4.5 10.5V8h7v2.5',
  site: 'M8 14s4.5-4.2 4.5-7.5a4.5 4.5 0 0 0-9 0C3.5 9.8 8 14 8 14zM8 8a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3z',
  farm: 'M2.5 13.5v-7L8 2.5l5.5 4v7zM6 13.5v-4h4v4',
  trash: 'M3 4.5h10M6 4.5v-2h4v2M4.5 4.5l.5 9h6l.5-9M6.75 7v4M9.25 7v4',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  close: 'M4 4l8 8M12 4l-8 8',
  chevron: 'M6 3.5 10.5 8 6 12.5',
  updown: 'M5 6.5 8 3.5l3 3M5 9.5l3 3 3-3',
  sun: 'M8 10.75a2.75 2.75 0 1 0 0-5.5 2.75 2.75 0 0 0 0 5.5zM8 1.5v1.25M8 13.25v1.25M1.5 8h1.25M13.25 8h1.25M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9',
  moon: 'M13.5 9.6A5.75 5.75 0 0 1 6.4 2.5a5.75 5.75 0 1 0 7.1 7.1z',
  system: 'M2.5 3.5h11v7h-11zM6 13.5h4',
  menuList: 'M2.5 2.5h11v11h-11zM5 5.5h4M5 8h6M5 10.5h3',
  members:
    'M6 7.5a2.25 2.25 0 1 0 0-4.5 2.25 2.25 0 0 0 0 4.5zM2 13c0-2.2 1.8-3.5 4-3.5s4 1.3 4 3.5M10.5 7.25a2 2 0 1 0-.6-3.9M11.75 9.6c1.4.4 2.25 1.6 2.25 3.4',
  serviceAccount: 'M3.5 5.5h9v7h-9zM8 5.5v-3M6 8.5h.01M10 8.5h.01M6 10.75h4M1.75 8v2.5M14.25 8v2.5',
  roles: 'M8 2.5l5 1.75v3.5c0 3-2 5-5 6-3-1-5-3-5-6v-3.5zM5.75 8l1.75 1.75L10.5 6.5',
  account: 'M8 8a2.75 2.75 0 1 0 0-5.5A2.75 2.75 0 0 0 8 8zM3 13.5c0-2.5 2.2-3.75 5-3.75s5 1.25 5 3.75',
  organization: 'M2.5 13.5v-11h6v11M8.5 6.5h5v7M2 13.5h12M4.75 5h1.5M4.75 7.5h1.5M4.75 10h1.5M11 9h.01M11 11h.01',
  platform: 'M8 2.5 14 5.5 8 8.5 2 5.5zM2.5 8.25 8 11l5.5-2.75M2.5 10.75 8 13.5l5.5-2.75',
  audit: 'M3.5 2.5h6l3 3v8h-9zM9.5 2.5v3h3M5.5 8h5M5.5 10.5h3',
  key: 'M5.5 13.5a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM7.6 8.4 13.5 2.5M11 5l2 2',
  webhook: 'M2.5 5.5h8M8 3l2.5 2.5L8 8M13.5 10.5h-8M8 8l-2.5 2.5L8 13',
  up: 'M4 9.5 8 5.5l4 4',
  down: 'M4 6.5l4 4 4-4',
  add: 'M8 3v10M3 8h10',
  download: 'M8 2.5v8M4.75 7.5 8 10.75l3.25-3.25M3 13.5h10',
  check: 'M3 8.5 6.5 12 13 4.5',
  power: 'M8 2v5.5M4.6 4.4a5 5 0 1 0 6.8 0',
  restart: 'M13 3v3.5H9.5M12.6 6.5A5.25 5.25 0 1 0 13.2 9.2',
  more: 'M3.5 8h.01M8 8h.01M12.5 8h.01',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.3 10.3l3.2 3.2',
  help: 'M8 14a6 6 0 1 0 0-12 6 6 0 0 0 0 12zM6.3 6.3c.2-2.2 3.6-2.2 3.6 0 0 1.3-1.9 1.4-1.9 2.9M8 11.4h.01',
  alert: 'M8 2.5 14 13H2zM8 6.5v3M8 11.2h.01',
  signOut: 'M6.5 2.5h-4v11h4M10 5l3 3-3 3M13 8H6',
} as const

export type IconName = keyof typeof paths

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg
      aria-hidden="true"
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.4"
      strokeLinecap="round"
      strokeLinejoin="round"
      className="shrink-0"
    >
      <path d={paths[name]} />
    </svg>
  )
}
