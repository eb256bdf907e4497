import { existsSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { childrenOf } from '../read-proc.ts'
import { freePort, startProcess } from '../start-process.ts'
import type { Subject } from './subject.ts'
import { untilAnswers } from './until-answers.ts'

/** The path of nginx, or null where it is not installed. */
export function findNginx(): string | null {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']
  return folders.map((folder) => join(folder, 'nginx')).find((file) => existsSync(file)) ?? null
}

/** A plain reverse proxy: connections to upstream are kept, nothing is buffered, nothing is logged. */
const configuration = (folder: string, port: number, upstreamUrl: string): string => `
  ${process.getuid?.() === 0 ? 'user root;' : ''}
  daemon off;
  worker_processes 1;
  worker_rlimit_nofile 65536;
  pid ${folder}/nginx.pid;
  error_log ${folder}/error.log;
  events { worker_connections 20000; }
  http {
    access_log off;
    client_body_temp_path ${folder}/client-body;
    proxy_temp_path ${folder}/proxy;
    fastcgi_temp_path ${folder}/fastcgi;
    uwsgi_temp_path ${folder}/uwsgi;
    scgi_temp_path ${folder}/scgi;
    client_max_body_size 0;
    keepalive_requests 1000000000;
    tcp_nodelay on;
    upstream measured {
      server ${new URL(upstreamUrl).host};
      keepalive 4096;
      keepalive_requests 1000000000;
    }
    server {
      listen 127.0.0.1:${port} backlog=4096;
      location / {
        proxy_pass http://measured;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_buffering off;
        proxy_request_buffering off;
      }
    }
  }
`

export function nginx(program: string): Subject {
  return {
    name: 'nginx',
    async start({ upstreamUrl, folder, core }) {
      const port = await freePort()
      const file = join(folder, 'nginx.conf')
      writeFileSync(file, configuration(folder, port, upstreamUrl))
      const started = startProcess({
        command: program,
        args: ['-c', file, '-e', join(folder, 'error.log')],
        core,
        errors: { file: join(folder, 'stderr.log') },
      })
      const url = `http://127.0.0.1:${port}`
      await untilAnswers(url)
      return {
        urls: [url],
        headers: () => [],
        pids: () => [started.pid, ...childrenOf(started.pid)],
        stop: () => started.stop(),
      }
    },
  }
}
