package aggregate

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestSmoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigConfig{validators: 8})
		for s := range 5 {
			d := dataOf(r.clock.Slot(), "a")
			r.until(r.clock.Slot(), 1, 0)
			r.vote(d, 0, 1, 2)
			r.wait(20 * time.Millisecond)
			r.vote(d, 3, 4, 5)
			r.wait(200 * time.Millisecond)
			r.vote(d, 6, 7)
			_ = s
			r.until(r.clock.Slot()+1, 0, 0)
		}
		r.stop()
		for _, l := range r.lines {
			fmt.Println(l)
		}
	})
}
