package aggregate

import "time"

// Shape of the cost of one job, as parts of what the hello job of two raw signatures took. From lean-pq 0.7.0 on two
// quiet cores: 2 raw 0.57 s, 64 raw 1.43 s, one child 1.66 s, two 2.93 s. A straight line through 2 and 64 raw
// over-estimates the flat stretch up to 32 by a third, on the safe side.
const (
	helloRaw  = 2     // raw signatures of the hello job
	rawPart   = 0.024 // of the hello job, for each raw signature
	childPart = 2.3   // of the hello job, for each child: 1.1 to 1.5 s
	// unmeasuredHello stands for a backend that measured nothing at hello: one inside this process, which checks
	// 434 signatures in 40 ms (bundle, 2 cores).
	unmeasuredHello = 50 * time.Millisecond
)

const (
	// costWeight is how far one observation moves the model. Half: two slots of load are believed, one outlier is not.
	// A guess, not measured.
	costWeight = 0.5
	// costDecay is the part of the way back to the hello figures that the model goes in a slot without news
	// (ARCHITECTURE.md section 3.5 point 3).
	costDecay = 0.1
	// costScaleMax bounds the factor over the hello figures. Ten times the work under a load average of 10 was six
	// (lean-pq 0.7.0, 2 cores); what is slower than that is stuck.
	costScaleMax = 16
	costScaleMin = 1.0 / 64
)

// costModel predicts the wall time of a job: fixed + per raw + per child, scaled by what was observed. Leaf jobs and
// children have a scale each, because recursion loads the machine differently. Owned by the aggregator's loop; a copy is
// a consistent value.
type costModel struct {
	hello       time.Duration // of the loaded prover
	isSeeded    bool          // hello was measured
	leaf, child float64       // observed over seed; 1 = as at hello
}

func newCostModel() costModel { return costModel{hello: unmeasuredHello, leaf: 1, child: 1} }

// seed takes the figure of a prover that was just loaded, zero from one that did not measure. What was learnt before is
// kept, in seconds: a prover that was killed for being slow must not make the model forget that it was.
func (m *costModel) seed(hello time.Duration) {
	if hello <= 0 {
		hello = unmeasuredHello
	}
	if hello == m.hello {
		return
	}
	ratio := 1.0
	if m.isSeeded {
		ratio = float64(m.hello) / float64(hello)
	}
	m.leaf, m.child = clampScale(m.leaf*ratio), clampScale(m.child*ratio)
	m.hello, m.isSeeded = hello, true
}

func (m *costModel) leafSeed(raw int) float64 {
	return float64(m.hello) * (1 + rawPart*float64(raw-helloRaw))
}

func (m *costModel) childSeed(children int) float64 {
	return float64(m.hello) * childPart * float64(children)
}

// predict returns the expected wall time of a job, at least 1 ms.
func (m *costModel) predict(raw, children int) time.Duration {
	d := m.leaf*m.leafSeed(raw) + m.child*m.childSeed(children)
	return max(time.Duration(d), time.Millisecond)
}

// rawWithin returns the largest number of raw signatures, at most most, that a job with that many children is predicted
// to prove in d; negative if not even none.
func (m *costModel) rawWithin(d time.Duration, children, most int) int {
	lo, hi := -1, most
	for lo < hi {
		mid := lo + (hi-lo+1)/2
		if m.predict(mid, children) <= d {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}

// observe learns from a job. isBound says that the job was killed: it would have taken at least that long, which moves
// the model up but never down.
func (m *costModel) observe(raw, children int, wall time.Duration, isBound bool) {
	if wall <= 0 || isBound && wall <= m.predict(raw, children) {
		return
	}
	if children == 0 {
		m.leaf = learn(m.leaf, float64(wall)/m.leafSeed(raw))
		return
	}
	rest := float64(wall) - m.leaf*m.leafSeed(raw)
	m.child = learn(m.child, rest/m.childSeed(children))
}

func learn(scale, observed float64) float64 {
	return clampScale(scale + costWeight*(observed-scale))
}

func clampScale(s float64) float64 { return min(max(s, costScaleMin), costScaleMax) }

// decay goes back towards the hello figures; called once a slot.
func (m *costModel) decay() {
	m.leaf += costDecay * (1 - m.leaf)
	m.child += costDecay * (1 - m.child)
}
