import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'

export interface Certificate {
  key: string
  cert: string
}

/** A certificate authority of the test, made by openssl. */
export class Authority {
  readonly caFile: string
  readonly #folder: string
  readonly #name: string

  constructor(folder: string, name: string) {
    this.#folder = folder
    this.#name = name
    this.caFile = this.#path('pem')
    const subject = ['-subj', `/CN=${name}`, '-days', '2', '-nodes']
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-keyout', this.#path('key')]
    const use = ['-addext', 'basicConstraints=critical,CA:TRUE', '-addext', 'keyUsage=critical,keyCertSign']
    openssl(['req', '-x509', ...key, ...subject, ...use, '-out', this.caFile])
  }

  /**
   * @param days how long it is valid from now on; negative: until the day that many days ago
   * @param names the names that it is for, as openssl writes them
   */
  certify(host: string, days = 2, names = `DNS:${host}`): Certificate {
    const [key, request, cert, extensions] = ['key', 'csr', 'crt', 'ext'].map((ext) => this.#path(`leaf.${ext}`)) as [
      string,
      string,
      string,
      string,
    ]
    writeFileSync(extensions, `subjectAltName=${names}\nextendedKeyUsage=serverAuth\n`)
    openssl(['ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', key])
    openssl(['req', '-new', '-key', key, '-subj', `/CN=${host}`, '-out', request])
    const signing = ['-CA', this.caFile, '-CAkey', this.#path('key'), '-CAcreateserial', '-extfile', extensions]
    openssl(['x509', '-req', '-in', request, ...signing, '-days', String(days), '-out', cert])
    return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') }
  }

  #path(extension: string): string {
    return path.join(this.#folder, `${this.#name}.${extension}`)
  }
}

function openssl(args: string[]): void {
  execFileSync('openssl', args, { stdio: 'pipe' })
}
