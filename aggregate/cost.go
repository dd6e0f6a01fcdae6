package aggregate

import "time"

// shape is what one job costs, as parts of what the hello job of two raw signatures took: fixed, for each raw signature,
// for each child.
type shape struct{ fixed, raw, child float64 }

// defaultShape is that of lean-pq 0.7.0 on two quiet cores: 2 raw 0.57 s, 64 raw 1.43 s, one child 1.66 s, two 2.93 s. A
// straight line through 2 and 64 raw over-estimates the flat stretch up to 32 by a third, on the safe side. `aggnode bench
// prover` measures the shape of another machine.
var defaultShape = shape{fixed: 1 - helloRaw*0.024, raw: 0.024, child: 2.3}

const (
	helloRaw = 2 // raw signatures of the hello job
	// unmeasuredHello stands for a backend that measured nothing at hello: one inside this process, which checks
	// 434 signatures in 40 ms (bundle, 2 cores).
	unmeasuredHello = 50 * time.Millisecond
)

const (
	// costWeight is how far one observation moves the prediction of the job that it is of. Half: two slots of load are
	// believed, one outlier is not. A guess, not measured.
	costWeight = 0.5
	// costDecay is the part of the way back to the hello figures that the model goes in each slot
	// (ARCHITECTURE.md section 5 point 3).
	costDecay = 0.1
	// rawDoubt is how much less the per raw seed is trusted than the fixed one (a ratio of variances). The fixed part is
	// measured at hello on this machine with this prover; the shape comes from another one. A guess: four times as far off.
	rawDoubt = 16
	// boundFactor limits what a killed job teaches: at most that its prediction was half of the truth. How long a wedged
	// prover was left alone says nothing about the work.
	boundFactor = 2
	// costScaleMax and costScaleMin bound the factors over the hello figures. Under a load average of 10 the same work
	// took up to six times as long (lean-pq 0.7.0, 2 cores); what is slower than 16 times is stuck.
	costScaleMax = 16
	costScaleMin = 1.0 / 64
)

// costModel predicts the wall time of a job as fixed + per raw + per child, each the seed from hello times a factor
// that is learnt from what jobs took. Owned by the aggregator's loop; a copy is a consistent value.
type costModel struct {
	hello             time.Duration // of the loaded prover
	shape             shape         // of its jobs
	fixed, raw, child float64       // observed over seed; 1 = as at hello
	hasLearnt         bool          // anything was observed
}

func newCostModel() costModel {
	return costModel{hello: unmeasuredHello, shape: defaultShape, fixed: 1, raw: 1, child: 1}
}

// seed takes the figure of a prover that was just loaded, zero from one that did not measure. What was learnt before is
// kept, in seconds: a prover that was killed for being slow must not make the model forget that it was.
func (m *costModel) seed(hello time.Duration) {
	if hello <= 0 {
		hello = unmeasuredHello
	}
	if hello == m.hello {
		return
	}
	if m.hasLearnt {
		ratio := float64(m.hello) / float64(hello)
		m.set(m.fixed*ratio, m.raw*ratio, m.child*ratio)
	}
	m.hello = hello
}

func (m *costModel) set(fixed, raw, child float64) {
	bound := func(s float64) float64 { return min(max(s, costScaleMin), costScaleMax) }
	m.fixed, m.raw, m.child = bound(fixed), bound(raw), bound(child)
}

// parts are the seed times of the three parts of a job, in units of the hello job.
func (m *costModel) parts(raw, children int) (fixed, raws, kids float64) {
	return m.shape.fixed, m.shape.raw * float64(raw), m.shape.child * float64(children)
}

// predict returns the expected wall time of a job, at least 1 ms.
func (m *costModel) predict(raw, children int) time.Duration {
	f, r, c := m.parts(raw, children)
	return max(time.Duration(float64(m.hello)*(m.fixed*f+m.raw*r+m.child*c)), time.Millisecond)
}

// atHello returns what the job takes when nothing else runs, as measured at hello.
func (m *costModel) atHello(raw, children int) time.Duration {
	f, r, c := m.parts(raw, children)
	return time.Duration(float64(m.hello) * (f + r + c))
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

// observe learns from a job. isBound says that the job was killed, which moves the model up but never down.
//
// A leaf job corrects fixed and per raw, each by its share in the job and by how little it is trusted (one step of a
// filter with constant, independent variances): jobs of different sizes tell the two apart. A job with children corrects
// per child alone, because recursion loads the machine in another way and says nothing about leaf jobs.
func (m *costModel) observe(raw, children int, wall time.Duration, isBound bool) {
	predicted := m.predict(raw, children)
	if isBound {
		wall = min(wall, boundFactor*predicted)
	}
	if wall <= 0 || isBound && wall <= predicted {
		return
	}
	m.hasLearnt = true
	f, r, c := m.parts(raw, children)
	miss := costWeight * float64(wall-predicted) / float64(m.hello)
	if children > 0 {
		m.set(m.fixed, m.raw, m.child+miss/c)
		return
	}
	norm := f*f + rawDoubt*r*r
	m.set(m.fixed+miss*f/norm, m.raw+miss*rawDoubt*r/norm, m.child)
}

// decay goes back towards the hello figures; called once a slot.
func (m *costModel) decay() {
	to := func(s float64) float64 { return s + costDecay*(1-s) }
	m.set(to(m.fixed), to(m.raw), to(m.child))
}

// slowness is how many times longer than at hello the smallest leaf job is predicted to take.
func (m *costModel) slowness() float64 {
	return float64(m.predict(helloRaw, 0)) / float64(m.atHello(helloRaw, 0))
}

// cost returns what the model predicts, in seconds.
func (m *costModel) cost() Cost {
	hello := m.hello.Seconds()
	return Cost{Fixed: hello * m.shape.fixed * m.fixed, Raw: hello * m.shape.raw * m.raw, Child: hello * m.shape.child * m.child}
}

// load takes up what was learnt in an earlier run. It decays towards hello like everything that is learnt.
func (m *costModel) load(c Cost) {
	hello := m.hello.Seconds()
	m.set(c.Fixed/(hello*m.shape.fixed), c.Raw/(hello*m.shape.raw), c.Child/(hello*m.shape.child))
	m.hasLearnt = true
}
