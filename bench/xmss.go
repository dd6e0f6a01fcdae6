package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"aggnode/internal/lanes"
	"aggnode/xmss"
)

const (
	defaultXMSSRounds = 5
	// defaultSearch makes 5 s of search a path.
	defaultSearch = time.Second

	keyEpochs = 1 << 16 // of the key that everything is measured with
	warmKeys  = 64      // of the pass that warms many keys
	keygens   = 3       // of which the median is reported
)

// XMSSConfig says how the signature scheme is measured. Scheme is required.
type XMSSConfig struct {
	Scheme   xmss.Scheme
	Rounds   int           // of all paths, interleaved; default 5
	Search   time.Duration // time of the search for randomizers a path and round, 1 s; the other figures get a tenth of it
	Progress io.Writer     // lines for a person; nil prints none

	epochs uint32 // of the key, at least four subtrees; 2^16 unless a test says less
}

// XMSSReport is how fast the scheme is on this machine. It is the JSON. The embedded path is the fastest.
type XMSSReport struct {
	CPUModel string `json:"cpu_model"`
	Cores    int    `json:"cores"`
	Scheme   string `json:"scheme"`
	XMSSPath

	// Key generation over 2^16 epochs on the fastest path. For keccak these are two trees of 2^16 leaves.
	KeygenS        float64 `json:"keygen_s"`          // all cores
	KeygenOneCoreS float64 `json:"keygen_one_core_s"` //

	// What the fastest path spends beyond its hashes, 1 being nothing.
	VerifyEff  float64 `json:"verify_eff"`
	SignEff    float64 `json:"sign_eff"`
	SubtreeEff float64 `json:"subtree_eff"`
	WarmEff    float64 `json:"warm_eff"` // of warm64_ms over its share of single-core subtrees

	Paths []XMSSPath `json:"paths"` // slowest first
}

// XMSSPath is one set of machine instructions. Times are medians over single calls, pooled over the rounds.
type XMSSPath struct {
	Path   string  `json:"path"`
	HashNS float64 `json:"hash_ns"` // one compression or permutation in the fastest kernel, all lanes used

	SignMS  float64 `json:"sign_ms"` // with the subtree at hand: expected trials times the time of one, and the rest
	TrialNS float64 `json:"trial_ns"`
	RestUS  float64 `json:"sign_rest_us"` // what a signature costs besides its search
	SearchS float64 `json:"search_s"`     // time over which the trials were measured
	Trials  int     `json:"trials"`       // measured

	VerifyUS1  float64 `json:"verify_us_1"`  // one signature alone, no upper part known
	VerifyUS16 float64 `json:"verify_us_16"` // one of a batch of 16

	LeafUS     float64 `json:"leaf_us"`
	SubtreeMS  float64 `json:"subtree512_ms"` // one core
	Warm64MS   float64 `json:"warm64_ms"`     // a subtree of each of 64 keys, all cores
	AllWarm64U float64 `json:"allwarm64_us"`  // the same pass when all are at hand

	LaneOccupancy float64         `json:"lane_occupancy"` // lanes used over lanes computed, counted over all of the following
	Occupancy     OccupancyReport `json:"occupancy"`

	// Against the portable path in this run.
	SpeedupSign   float64 `json:"speedup_sign"`
	SpeedupVerify float64 `json:"speedup_verify"` // batches of 16
	SpeedupLeaf   float64 `json:"speedup_leaf"`
}

// OccupancyReport is the share of lanes that was used, by what they were used for.
type OccupancyReport struct {
	Sign     float64 `json:"sign"`
	Verify1  float64 `json:"verify_1"`
	Verify16 float64 `json:"verify_16"`
	Subtree  float64 `json:"subtree"`
}

// work is what the scheme must hash (schemes.md): the denominators of the efficiencies.
type work struct {
	trials      float64 // expected of a search
	hashesTrial float64 // of one trial
	verify      float64 // hashes of a check
	leaf        float64 // hashes of a leaf
}

func workOf(s xmss.Scheme) work {
	if s == xmss.Keccak {
		return work{trials: 1 << 20, hashesTrial: 1, verify: 186, leaf: 241}
	}
	return work{trials: 29_489, hashesTrial: 3, verify: 144, leaf: 347}
}

// XMSS measures signing, checking and key generation on every path of this CPU. The paths take turns, so that a machine whose
// speed drifts treats all alike; the process must do nothing else, since the path is a setting of all of it. It blocks for
// about two thirds of a minute (blake2s) or a minute and a half (keccak) with defaults. ctx ends it early, with its error.
func XMSS(ctx context.Context, cfg XMSSConfig) (*XMSSReport, error) {
	cfg.Rounds, cfg.Search = cmp.Or(cfg.Rounds, defaultXMSSRounds), cmp.Or(cfg.Search, defaultSearch)
	cfg.epochs = cmp.Or(cfg.epochs, keyEpochs)
	switch {
	case !cfg.Scheme.Valid():
		return nil, xmss.ErrScheme
	case cfg.Rounds < 1 || cfg.Search < time.Millisecond:
		return nil, errors.New("xmss bench: at least one round and 1ms of search a path")
	}
	paths := lanes.Paths()
	before := lanes.Use(paths[len(paths)-1])
	defer lanes.Use(before)
	r, err := newXMSSRig(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	all := make([]*pathSamples, len(paths))
	for i := range all {
		all[i] = &pathSamples{path: paths[i]}
	}
	for round := range cfg.Rounds {
		for _, s := range all {
			lanes.Use(s.path)
			if err := r.measure(ctx, s); err != nil {
				return nil, fmt.Errorf("round %d, path %s: %w", round+1, s.path, err)
			}
			say(cfg.Progress, "round %d of %d  %-8s sign %8.3f ms  verify %7.2f us, of 16 %7.2f us  leaf %7.2f us  64 subtrees %7.1f ms",
				round+1, cfg.Rounds, s.path, r.signMS(s), median(s.verify1), median(s.verify16), median(s.leaf), median(s.warm))
		}
	}
	lanes.Use(paths[len(paths)-1])
	if err := r.measureKeygen(ctx); err != nil {
		return nil, err
	}
	return r.report(all), nil
}

// report puts the figures together.
func (r *xmssRig) report(all []*pathSamples) *XMSSReport {
	report := &XMSSReport{CPUModel: cpuModel(), Cores: runtime.GOMAXPROCS(0), Scheme: r.cfg.Scheme.String()}
	for _, s := range all {
		p := r.pathReport(s)
		generic := p
		if len(report.Paths) > 0 {
			generic = report.Paths[0]
		}
		p.SpeedupSign = ratio(generic.SignMS, p.SignMS)
		p.SpeedupVerify = ratio(generic.VerifyUS16, p.VerifyUS16)
		p.SpeedupLeaf = ratio(generic.LeafUS, p.LeafUS)
		report.Paths = append(report.Paths, p)
	}
	report.XMSSPath = report.Paths[len(report.Paths)-1]
	report.KeygenS, report.KeygenOneCoreS = median(r.keygen), round3(r.keygenOneCore.Seconds())
	w := workOf(r.cfg.Scheme)
	report.VerifyEff = ratio(1e3*report.VerifyUS16/w.verify, report.HashNS)
	report.SignEff = ratio(1e6*report.SignMS/(w.trials*w.hashesTrial), report.HashNS)
	report.SubtreeEff = ratio(1e6*report.SubtreeMS/(subtreeLeaves*w.leaf), report.HashNS)
	report.WarmEff = ratio(report.Warm64MS, warmKeys*report.SubtreeMS/float64(report.Cores))
	return report
}

// pathReport is what one path has shown.
func (r *xmssRig) pathReport(s *pathSamples) XMSSPath {
	return XMSSPath{
		Path: s.path.String(), HashNS: median(s.hash),
		SignMS: r.signMS(s), TrialNS: round3(1000 * s.trialUS()), RestUS: median(s.rest),
		SearchS: round3(s.searched.Seconds()), Trials: s.trials,
		VerifyUS1: median(s.verify1), VerifyUS16: median(s.verify16),
		LeafUS: median(s.leaf), SubtreeMS: median(s.subtree), Warm64MS: median(s.warm), AllWarm64U: median(s.allWarm),
		LaneOccupancy: share64(s.signLanes, s.verify1Lanes, s.verify16Lanes, s.subtreeLanes),
		Occupancy: OccupancyReport{
			Sign: share64(s.signLanes), Verify1: share64(s.verify1Lanes),
			Verify16: share64(s.verify16Lanes), Subtree: share64(s.subtreeLanes),
		},
	}
}

// signMS is the time of a signature whose search takes the expected number of trials.
func (r *xmssRig) signMS(s *pathSamples) float64 {
	return round3((workOf(r.cfg.Scheme).trials*s.trialUS() + median(s.rest)) / 1000)
}

// share64 is the share of lanes that was used, 0 where none was computed.
func share64(counts ...lanes.Occupancy) float64 {
	var used, capacity uint64
	for _, c := range counts {
		used, capacity = used+c.Used, capacity+c.Capacity
	}
	return ratio(float64(used), float64(capacity))
}
