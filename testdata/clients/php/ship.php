<?php
// Sends the same records with Monolog, as Debian packages it.
//
// usage: ship.php COUNT [KIND TARGET]...
//
// A target is HOST:PORT, or a file for kinds that end with "-file". Each text begins with KIND. Records: one of each
// level, an error with its stack, text beyond ASCII, an object within an object, two lines, one of a time long ago, and
// COUNT in a burst.

require 'Monolog/autoload.php';

use Monolog\Formatter\JsonFormatter;
use Monolog\Formatter\LineFormatter;
use Monolog\Formatter\LogstashFormatter;
use Monolog\Handler\SocketHandler;
use Monolog\Handler\StreamHandler;
use Monolog\Logger;

const LONG_AGO = '2025-11-21T10:00:00.123Z';

function ship(string $kind, int $count, Logger $logger): void
{
    $logger->info("$kind it started");
    $logger->warning("$kind it is slow", ['ms' => 12.5]);
    $logger->error("$kind order failed", ['exception' => new RuntimeException('it failed')]);
    $logger->info("$kind grüße 日本 🎉");
    $logger->info("$kind nested", ['user' => ['id' => 7, 'name' => 'ann']]);
    $logger->info("$kind first line\n  second line");
    // The class of the library takes no time.
    $logger->setTimezone(new DateTimeZone('UTC'));
    $logger->pushProcessor(function (array $record): array {
        $time = new DateTimeImmutable(LONG_AGO);
        return ['datetime' => $record['datetime']->setTimestamp($time->getTimestamp())->setTime(10, 0, 0, 123000)] + $record;
    });
    $logger->info("$kind long ago");
    $logger->popProcessor();
    for ($number = 0; $number < $count; $number++) {
        $logger->info("$kind burst $number", ['number' => $number]);
    }
}

function with_traces(LineFormatter|JsonFormatter $formatter)
{
    $formatter->includeStacktraces();
    return $formatter;
}

$formatters = [
    // Laravel's and Symfony's.
    'monolog-file' => fn () => with_traces(new LineFormatter(null, 'Y-m-d H:i:s.v', true, true)),
    'monolog-iso-file' => fn () => with_traces(new LineFormatter(null, null, true, true)),
    'monolog-json-file' => fn () => with_traces(new JsonFormatter()),
    'monolog-json' => fn () => with_traces(new JsonFormatter()),
    'monolog-logstash-file' => fn () => new LogstashFormatter('shop'),
];
array_shift($argv);
$count = (int) array_shift($argv);
foreach (array_chunk($argv, 2) as [$kind, $target]) {
    $is_file = str_ends_with($kind, '-file');
    $handler = $is_file ? new StreamHandler($target) : new SocketHandler("tcp://$target");
    $handler->setFormatter($formatters[$kind]());
    ship($kind, $count, new Logger('shop', [$handler]));
    $handler->close();
}
