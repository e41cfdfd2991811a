//! Choosing the next token from logits.

/// How the next token is chosen. The order is llama.cpp's: the `top_k` largest logits, of these the smallest set
/// whose probabilities reach `top_p`, then one of it by chance at `temperature`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// 0 takes the most likely token; larger values flatten the distribution.
    pub temperature: f32,
    /// How many of the likeliest tokens may be taken; 0 sets no limit.
    pub top_k: usize,
    /// The probability that the tokens which may be taken reach together; 1 sets no limit.
    pub top_p: f32,
    /// Where chance begins: the same seed, prompt and model give the same text.
    pub seed: u64,
}

impl Default for Sampling {
    /// The most likely token each time.
    fn default() -> Sampling {
        Sampling { temperature: 0.0, top_k: 40, top_p: 0.95, seed: 0 }
    }
}

/// Chooses tokens one after another. Its buffer is kept, so that choosing allocates nothing after the first time.
#[derive(Clone, Debug)]
pub struct Sampler {
    sampling: Sampling,
    random: SplitMix64,
    candidates: Vec<(f32, u32)>,
}

impl Sampler {
    /// A sampler at the beginning of its seed.
    pub fn new(sampling: Sampling) -> Sampler {
        Sampler { sampling, random: SplitMix64(sampling.seed), candidates: Vec::new() }
    }

    /// The next token, or `None` where no logit is a number. Among equal logits the lowest token wins.
    pub fn next(&mut self, logits: &[f32]) -> Option<u32> {
        if self.sampling.temperature <= 0.0 || self.sampling.top_k == 1 {
            return largest(logits);
        }
        let candidates = &mut self.candidates;
        candidates.clear();
        candidates.extend((0..).zip(logits).filter(|(_, l)| !l.is_nan()).map(|(t, &l)| (l, t)));
        let order = |a: &(f32, u32), b: &(f32, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        let k = self.sampling.top_k;
        if k > 0 && k < candidates.len() {
            candidates.select_nth_unstable_by(k, order);
            candidates.truncate(k);
        }
        candidates.sort_unstable_by(order);
        let top = candidates.first()?.0;
        if self.sampling.top_p < 1.0 {
            let total: f32 = candidates.iter().map(|(l, _)| (l - top).exp()).sum();
            let mut reached = 0.0;
            let enough = candidates.iter().position(|(l, _)| {
                reached += (l - top).exp() / total;
                reached >= self.sampling.top_p
            });
            candidates.truncate(enough.map_or(candidates.len(), |at| at + 1));
        }
        let weight = |l: f32| ((l - top) / self.sampling.temperature).exp();
        let total: f32 = candidates.iter().map(|&(l, _)| weight(l)).sum();
        let mut left = self.random.unit() * total;
        for &(logit, token) in candidates.iter() {
            left -= weight(logit);
            if left < 0.0 {
                return Some(token);
            }
        }
        candidates.last().map(|&(_, token)| token)
    }
}

fn largest(logits: &[f32]) -> Option<u32> {
    let mut best: Option<(u32, f32)> = None;
    for (token, &logit) in (0..).zip(logits) {
        if !logit.is_nan() && best.is_none_or(|(_, b)| logit > b) {
            best = Some((token, logit));
        }
    }
    best.map(|(token, _)| token)
}

/// SplitMix64 (Steele, Lea, Flood 2014): a step and a mix of one 64-bit word.
#[derive(Clone, Debug)]
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Evenly within 0..1.
    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 24) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_temperature_the_largest_logit_is_taken_and_the_first_of_equals() {
        let mut sampler = Sampler::new(Sampling::default());
        assert_eq!(sampler.next(&[0.5, 2.0, f32::NAN, 2.0]), Some(1));
        assert_eq!(sampler.next(&[f32::NAN]), None);
        assert_eq!(sampler.next(&[]), None);
    }

    #[test]
    fn the_generator_gives_the_published_sequence() {
        // The first outputs of SplitMix64 from seed 1234567 (Java's SplittableRandom and the paper's reference).
        let mut random = SplitMix64(1_234_567);
        assert_eq!([random.next(), random.next()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn tokens_come_as_often_as_their_probability_says() {
        let sampling = Sampling { temperature: 1.0, top_k: 0, top_p: 1.0, seed: 7 };
        let mut sampler = Sampler::new(sampling);
        let logits = [0.7f32.ln(), 0.2f32.ln(), 0.1f32.ln()];
        let mut counts = [0; 3];
        for _ in 0..20_000 {
            counts[sampler.next(&logits).unwrap() as usize] += 1;
        }
        for (count, expected) in counts.into_iter().zip([14_000.0, 4_000.0, 2_000.0f64]) {
            // Four standard deviations of the binomial distribution.
            assert!((f64::from(count) - expected).abs() < 4.0 * 65.0, "{counts:?}");
        }
    }

    #[test]
    fn top_k_and_top_p_leave_out_the_unlikely() {
        let logits = [0.5f32.ln(), 0.3f32.ln(), 0.15f32.ln(), 0.05f32.ln()];
        let seen = |top_k, top_p| {
            let mut sampler = Sampler::new(Sampling { temperature: 5.0, top_k, top_p, seed: 1 });
            let mut seen = [false; 4];
            (0..500).for_each(|_| seen[sampler.next(&logits).unwrap() as usize] = true);
            seen
        };
        assert_eq!(seen(2, 1.0), [true, true, false, false]);
        assert_eq!(seen(0, 0.79), [true, true, false, false]);
        assert_eq!(seen(0, 0.81), [true, true, true, false]);
        assert_eq!(seen(0, 1.0), [true; 4]);
    }

    #[test]
    fn the_same_seed_gives_the_same_tokens() {
        let draw = |seed| {
            let mut sampler = Sampler::new(Sampling { temperature: 1.0, top_k: 0, top_p: 1.0, seed });
            (0..50).map(|_| sampler.next(&[0.0; 100]).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }
}
