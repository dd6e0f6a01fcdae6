package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

func somebody(t testing.TB, n int) wire.Participants {
	t.Helper()
	indices := make([]wire.ValidatorIndex, n)
	for i := range indices {
		indices[i] = wire.ValidatorIndex(i)
	}
	p, err := wire.NewParticipants(indices)
	require.NoError(t, err)
	return p
}

type pageJSON struct {
	Next       uint64
	Lost       uint64
	More       bool
	Aggregates []struct {
		Seq, Slot    uint64
		DataRoot     string `json:"data_root"`
		Participants int
		Indices      []uint64
		ProofBytes   int `json:"proof_bytes"`
		Source       string
		AtMS         float64 `json:"at_ms"`
		CheckMS      float64 `json:"check_ms"`
		Peers        int
	}
}

func parsePage(t *testing.T, body string) pageJSON {
	t.Helper()
	var p pageJSON
	require.NoError(t, json.Unmarshal([]byte(body), &p), body)
	return p
}

func TestAggregatesAreListedAsAdded(t *testing.T) {
	t.Parallel()
	r := serve(t)
	url := r.apiURL("/aggnode/v1/aggregates")
	code, body := do(t, "GET", url, "")
	require.Equal(t, 200, code)
	require.JSONEq(t, `{"next":0,"lost":0,"more":false,"aggregates":[]}`, body)

	r.log.Add(Aggregate{
		Slot: 7, DataRoot: wire.DataRoot{0xab}, Participants: somebody(t, 3), Proof: make([]byte, 1234),
		Source: SourceGossip, At: 1500 * time.Millisecond, Check: 12345 * time.Microsecond,
	})
	r.log.Add(Aggregate{Slot: 8, Participants: somebody(t, 1), Source: SourceOwn, At: -time.Millisecond, Peers: 4})
	_, body = do(t, "GET", url, "")
	require.JSONEq(t, `{"next":2,"lost":0,"more":false,"aggregates":[
		{"seq":0,"slot":7,"data_root":"0xab00000000000000000000000000000000000000000000000000000000000000","participants":3,"indices":[0,1,2],
		 "proof_bytes":1234,"source":"gossip","at_ms":1500,"check_ms":12.345,"peers":0},
		{"seq":1,"slot":8,"data_root":"0x0000000000000000000000000000000000000000000000000000000000000000","participants":1,"indices":[0],
		 "proof_bytes":0,"source":"own","at_ms":-1,"check_ms":0,"peers":4}]}`, body)
	_, body = do(t, "GET", url+"?since=1", "")
	require.Len(t, parsePage(t, body).Aggregates, 1)
	_, body = do(t, "GET", url+"?limit=1", "")
	p := parsePage(t, body)
	require.EqualValues(t, 1, p.Aggregates[0].Seq, "without since, the latest")
	_, body = do(t, "GET", url+"?since=99", "")
	require.JSONEq(t, `{"next":2,"lost":0,"more":false,"aggregates":[]}`, body)
	for _, bad := range []string{"?since=x", "?limit=x", "?limit=0", "?limit=257", "?since=-1", "?limit=", "?since=18446744073709551616"} {
		code, body = do(t, "GET", url+bad, "")
		require.Equal(t, 400, code, bad)
		require.Contains(t, body, "error")
	}
}

func TestAReaderThatGoesOnMissesNothingUnnoticed(t *testing.T) {
	t.Parallel()
	l := NewAggregateLog()
	for n := range 3 * aggregateLogSize {
		l.Add(Aggregate{Slot: wire.Slot(n)})
	}
	p := l.since(10, math.MaxInt, math.MaxInt)
	require.EqualValues(t, 2*aggregateLogSize-10, p.lost)
	require.Len(t, p.entries, aggregateLogSize)
	require.EqualValues(t, 2*aggregateLogSize, p.first)
	require.EqualValues(t, 2*aggregateLogSize, p.entries[0].Slot)
	require.False(t, p.more)

	var seen []wire.Slot
	for next := p.first; ; {
		p := l.since(next, 100, math.MaxInt)
		require.Zero(t, p.lost)
		for _, a := range p.entries {
			seen = append(seen, a.Slot)
		}
		next = p.first + uint64(len(p.entries))
		if !p.more {
			break
		}
	}
	require.Len(t, seen, aggregateLogSize)
	for i, slot := range seen {
		require.EqualValues(t, 2*aggregateLogSize+i, slot)
	}
	require.EqualValues(t, 3*aggregateLogSize-5, l.latest(5))
	require.Zero(t, NewAggregateLog().latest(5))
}

func TestAPageIsBoundedByItsIndices(t *testing.T) {
	t.Parallel()
	l := NewAggregateLog()
	everybody := somebody(t, wire.DefaultRegistryLimit)
	for range 10 {
		l.Add(Aggregate{Participants: everybody})
	}
	p := l.since(0, maxPage, maxPageIndices)
	require.Len(t, p.entries, maxPageIndices/wire.DefaultRegistryLimit)
	require.True(t, p.more)
	p = l.since(0, maxPage, 100)
	require.Len(t, p.entries, 1, "one at least, or a reader would never go on")
	require.Less(t, len(p.appendJSON(nil)), 64<<10)
}

func TestReadersAndWritersOfTheLog(t *testing.T) {
	t.Parallel()
	l := NewAggregateLog()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for n := range 3000 {
				l.Add(Aggregate{Slot: wire.Slot(n)})
			}
		})
		wg.Go(func() {
			next := uint64(0)
			for range 300 {
				p := l.since(next, 64, 64)
				if p.first < next {
					t.Error("went back")
				}
				next = p.first + uint64(len(p.entries))
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 4*3000-1, l.latest(1))
}

func TestSourcesHaveNames(t *testing.T) {
	t.Parallel()
	require.Equal(t, "own gossip unknown unknown", fmt.Sprint(SourceOwn, SourceGossip, SourceUnknown, Source(9)))
}

func BenchmarkPage(b *testing.B) {
	l := NewAggregateLog()
	everybody := somebody(b, wire.DefaultRegistryLimit)
	for range 10 {
		l.Add(Aggregate{Participants: everybody})
	}
	b.ReportAllocs()
	for b.Loop() {
		p := l.since(0, maxPage, maxPageIndices)
		_ = p.appendJSON(nil)
	}
}

func TestProofsAreKeptForDownloadWithinTheirRoom(t *testing.T) {
	t.Parallel()
	l := NewAggregateLog()
	const size = 1 << 20
	for i := range 20 {
		l.Add(Aggregate{Slot: wire.Slot(i), Proof: bytes.Repeat([]byte{byte(i)}, size)})
	}
	require.Nil(t, l.proof(0), "the oldest were let go")
	require.Nil(t, l.proof(11))
	require.Len(t, l.proof(12), size)
	require.Equal(t, byte(19), l.proof(19)[0])
	require.Nil(t, l.proof(20), "not there yet")
	l.Add(Aggregate{Proof: make([]byte, maxKeptProofBytes+1)})
	require.Nil(t, l.proof(20), "longer than the room")
	l.Add(Aggregate{Proof: []byte{1}})
	require.Equal(t, []byte{1}, l.proof(21))
	for range 2 * aggregateLogSize {
		l.Add(Aggregate{Proof: []byte{2}})
	}
	require.Nil(t, l.proof(21))
	require.Equal(t, []byte{2}, l.proof(l.added-aggregateLogSize))
	require.Equal(t, aggregateLogSize, l.keptBytes)
}
