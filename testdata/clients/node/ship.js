'use strict'
// Sends the same records with one of the loggers of this folder's packages.
//
// usage: ship.js KIND HOST:PORT COUNT
//        ship.js KIND FILE COUNT, for kinds that end with "-file"
//
// It ends with its standard input. Each text begins with KIND. Records: one of each level, an error with its stack, text
// beyond ASCII, an object within an object, two lines, one of a time long ago if the logger can, and COUNT in a burst.

const [kind, address, count] = process.argv.slice(2)
const [host, port] = [address.split(':')[0], Number(address.split(':')[1])]
const url = `http://${address}`
const LONG_AGO = '2025-11-21T10:00:00.123Z'

// Sends the records by `log(level, text, fields, error)`, and the one of long ago by `old(text)`.
function ship (log, old) {
  log('info', `${kind} it started`)
  log('warn', `${kind} it is slow`, { ms: 12.5 })
  log('error', `${kind} order failed`, {}, new TypeError('it failed'))
  log('info', `${kind} grüße 日本 🎉`)
  log('info', `${kind} nested`, { user: { id: 7, name: 'ann' } })
  log('info', `${kind} first line\n  second line`)
  if (old) old(`${kind} long ago`)
  for (let number = 0; number < count; number++) log('info', `${kind} burst ${number}`, { number })
}

// Goes on until standard input ends: a logger says nothing when it has sent what it holds, whoever started this sees it.
const exitWhenAsked = () => process.stdin.on('end', () => process.exit()).resume()

function failed (error) {
  console.error(kind, error)
  process.exitCode = 1
}

function withPino (transport) {
  const pino = require('pino')
  const stream = pino.transport(transport)
  stream.on('error', failed)
  const logger = pino({ name: 'shop' }, stream)
  ship(
    (level, text, fields, error) => logger[level](error || fields || {}, text),
    text => logger.info({ time: Date.parse(LONG_AGO) }, text)
  )
  exitWhenAsked()
}

// The lines of people who write them with a format of their own.
function text () {
  const { format } = require('winston')
  return format.printf(({ timestamp, level, message, stack }) => `${timestamp} ${level}: ${stack ? `${message}\n${stack}` : message}`)
}

function withWinston (transport, levels = 'npm', last) {
  const winston = require('winston')
  const { errors, timestamp, json } = winston.format
  transport.on('error', failed)
  transport.on('warn', failed)
  const logger = winston.createLogger({
    level: 'debug',
    levels: winston.config[levels].levels,
    format: winston.format.combine(errors({ stack: true }), timestamp(), last || json()),
    defaultMeta: { service: 'shop' },
    transports: [transport]
  })
  ship(
    (level, text, fields, error) => {
      const name = levels === 'syslog' && level === 'warn' ? 'warning' : level
      logger.log({ level: name, message: text, ...fields, ...(error && { stack: error.stack }) })
    },
    text => logger.info({ message: text, timestamp: LONG_AGO })
  )
  exitWhenAsked()
}

function withBunyan (stream) {
  const bunyan = require('bunyan')
  stream.on('error', failed)
  const logger = bunyan.createLogger({ name: 'shop', stream, serializers: bunyan.stdSerializers })
  ship(
    (level, text, fields, error) => logger[level](error ? { err: error } : fields || {}, text),
    text => logger.info({ time: new Date(LONG_AGO) }, text)
  )
  stream.end()
}

const kinds = {
  'pino-loki': () => withPino({ target: 'pino-loki', options: { host: url, labels: { app: 'shop' }, interval: 0.2 } }),
  'pino-elasticsearch': () => withPino({
    target: 'pino-elasticsearch',
    options: { node: url, index: 'logs-shop', opType: 'create', flushBytes: 10000, flushInterval: 300 }
  }),
  'pino-socket': () => withPino({ target: 'pino-socket', options: { mode: 'tcp', address: host, port } }),
  'pino-syslog': () => withPino({
    pipeline: [
      { target: 'pino-syslog', options: { modern: false, appname: 'shop', enablePipelining: true, newline: true } },
      { target: 'pino-socket', options: { mode: 'tcp', address: host, port } }
    ]
  }),
  'winston-loki': () => {
    const Loki = require('winston-loki')
    const { format } = require('winston')
    const options = { host: url, json: true, format: format.json(), labels: { app: 'shop' }, interval: 0.2 }
    // Its first batch may wait for seconds on a busy machine.
    withWinston(new Loki({ ...options, replaceTimestamp: false, onConnectionError: failed }))
  },
  'winston-elasticsearch': () => {
    const { ElasticsearchTransport } = require('winston-elasticsearch')
    const options = { clientOpts: { node: url }, indexPrefix: 'logs', level: 'debug', flushInterval: 300 }
    withWinston(new ElasticsearchTransport(options))
  },
  'winston-syslog': () => {
    const { Syslog } = require('winston-syslog')
    const options = { host, port, protocol: 'tcp4', type: 'BSD', app_name: 'shop', localhost: 'web-1', eol: '\n' }
    withWinston(new Syslog(options), 'syslog')
  },
  'winston-gelf': () => {
    const Gelf = require('winston-gelf')
    const options = { adapterName: 'udp', adapterOptions: { host, port }, fields: { app: 'shop' } }
    withWinston(new Gelf({ gelfPro: options }))
  },
  'winston-http': () => {
    const winston = require('winston')
    withWinston(new winston.transports.Http({ host, port, path: '/api/v1/push' }))
  },
  'winston-file': () => withWinston(new (require('winston').transports.File)({ filename: address }), 'npm', text()),
  'winston-json-file': () => withWinston(new (require('winston').transports.File)({ filename: address })),
  'pino-file': () => withPino({ target: 'pino/file', options: { destination: address } }),
  'bunyan-file': () => withBunyan(require('fs').createWriteStream(address)),
  bunyan: () => withBunyan(require('net').connect(port, host)),
  'fluent-logger': () => {
    const fluent = require('fluent-logger')
    const sender = fluent.createFluentSender('shop', {
      host, port, timeout: 5, requireAckResponse: true, eventMode: 'PackedForward'
    })
    sender.on('error', failed)
    const emit = (text, fields, time) => sender.emit('web', { message: text, ...fields }, time)
    ship(
      (level, text, fields, error) => emit(text, { level, ...fields, ...(error && { stack: error.stack }) }, fluent.EventTime.now()),
      text => emit(text, { level: 'info' }, new fluent.EventTime(Date.parse(LONG_AGO) / 1000 | 0, 123000000))
    )
    exitWhenAsked()
  },
  'splunk-logging': () => {
    const { Logger } = require('splunk-logging')
    const logger = new Logger({ token: 'any', url, batchInterval: 200, maxBatchCount: 500 })
    logger.error = failed
    const metadata = { host: 'web-1', source: 'shop' }
    ship(
      (level, text, fields, error) => logger.send({
        message: { msg: text, ...fields, ...(error && { stack: error.stack }) }, severity: level, metadata
      }),
      text => logger.send({ message: text, metadata: { time: Date.parse(LONG_AGO) / 1000 } })
    )
    exitWhenAsked()
  }
}

process.on('unhandledRejection', failed)
kinds[kind]()
