// Sends the same records with olivere's client of Elasticsearch, one by one and by its bulk processor, and reads them.
//
// usage: ship COUNT [KIND HOST:PORT]...
//
// Each text begins with KIND. Records: one of each level, an error with its stack, text beyond ASCII, a field of a context,
// two lines, one of a time long ago, and COUNT in a burst.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/olivere/elastic/v7"
)

type document map[string]interface{}

// Calls send with the documents of a kind, in their order.
func ship(kind string, count int, send func(document) error) error {
	now := func(level, text string) document {
		at := time.Now().Format(time.RFC3339Nano)
		return document{"@timestamp": at, "level": level, "message": kind + " " + text}
	}
	with := func(to document, name string, value interface{}) document {
		to[name] = value
		return to
	}
	user := document{"id": 7, "name": "ann"}
	documents := []document{
		now("info", "it started"),
		with(now("warn", "it is slow"), "ms", 12.5),
		with(now("error", "order failed"), "stack", "it failed\n\tat ship.go:42"),
		now("info", "grüße 日本 🎉"),
		with(now("info", "nested"), "user", user),
		now("info", "first line\n  second line"),
		with(now("info", "long ago"), "@timestamp", "2025-11-21T10:00:00.123Z"),
	}
	for number := 0; number < count; number++ {
		documents = append(documents, with(now("info", "burst "+strconv.Itoa(number)), "number", number))
	}
	for _, each := range documents {
		if err := send(each); err != nil {
			return err
		}
	}
	return nil
}

// Creates the index unless it is there, as programs do when they start.
func create(ctx context.Context, client *elastic.Client, index string) error {
	isThere, err := client.IndexExists(index).Do(ctx)
	if err != nil || isThere {
		return err
	}
	body := `{"settings":{"number_of_shards":1},"mappings":{"properties":{"message":{"type":"text"}}}}`
	created, err := client.CreateIndex(index).BodyString(body).Do(ctx)
	if err == nil && !created.Acknowledged {
		err = errors.New("the index is not acknowledged")
	}
	return err
}

// Indexes a document at a time; every second one has an id.
func one(ctx context.Context, client *elastic.Client, index string) func(document) error {
	number := 0
	return func(each document) error {
		number++
		request := client.Index().Index(index).BodyJson(each)
		if number%2 == 0 {
			request = request.Id(index + "-" + strconv.Itoa(number)).OpType("create")
		}
		answer, err := request.Do(ctx)
		if err != nil {
			return err
		}
		if answer.Id == "" || answer.Result != "created" || answer.Shards == nil || answer.Shards.Successful < 1 {
			return fmt.Errorf("the answer is %+v", answer)
		}
		return nil
	}
}

// Hands documents to the bulk processor, and waits for all of them.
func bulk(ctx context.Context, client *elastic.Client, kind, index string, count int) error {
	var failed int64
	after := func(_ int64, requests []elastic.BulkableRequest, answer *elastic.BulkResponse, err error) {
		if err != nil || answer.Errors || len(answer.Succeeded()) != len(requests) {
			atomic.AddInt64(&failed, 1)
		}
	}
	processor, err := client.BulkProcessor().Name("ship").Workers(2).BulkActions(50).
		FlushInterval(100 * time.Millisecond).After(after).Do(ctx)
	if err != nil {
		return err
	}
	err = ship(kind, count, func(each document) error {
		processor.Add(elastic.NewBulkIndexRequest().Index(index).Doc(each))
		return nil
	})
	if closed := processor.Close(); err == nil {
		err = closed
	}
	if err == nil && atomic.LoadInt64(&failed) > 0 {
		err = fmt.Errorf("%d bulk requests failed", failed)
	}
	return err
}

// Reads the records of the burst by a search, and all of the index by scrolling.
func read(ctx context.Context, client *elastic.Client, kind, index string, count int) error {
	if _, err := client.Refresh(index).Do(ctx); err != nil {
		return err
	}
	query := elastic.NewBoolQuery().Must(elastic.NewMatchPhraseQuery("message", kind+" burst")).
		Filter(elastic.NewTermQuery("level", "info"))
	found, err := client.Search(index).Query(query).Sort("@timestamp", true).Size(10).TrackTotalHits(true).Do(ctx)
	if err != nil {
		return err
	}
	if found.TotalHits() != int64(count) || len(found.Hits.Hits) != 10 {
		return fmt.Errorf("the search has %d hits", found.TotalHits())
	}
	scroll := client.Scroll(index).Size(64)
	documents := 0
	for {
		page, err := scroll.Do(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		documents += len(page.Hits.Hits)
	}
	if documents != count+7 {
		return fmt.Errorf("scrolling gave %d documents", documents)
	}
	return scroll.Clear(ctx)
}

func run(kind, target string, count int) error {
	ctx := context.Background()
	// It asks the nodes for their addresses, and looks whether they are well.
	client, err := elastic.NewClient(elastic.SetURL("http://" + target))
	if err != nil {
		return err
	}
	defer client.Stop()
	index := "logs-" + kind
	if err := create(ctx, client, index); err != nil {
		return err
	}
	if kind == "olivere-bulk" {
		err = bulk(ctx, client, kind, index, count)
	} else {
		err = ship(kind, count, one(ctx, client, index))
	}
	if err != nil {
		return err
	}
	return read(ctx, client, kind, index, count)
}

func main() {
	count, err := strconv.Atoi(os.Args[1])
	for at := 2; err == nil && at+1 < len(os.Args); at += 2 {
		if err = run(os.Args[at], os.Args[at+1], count); err != nil {
			err = fmt.Errorf("%s: %w", os.Args[at], err)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
