//! What each of some flows is due of what they share.

/// Divides `capacity` max-min fairly: nobody gets more than asked for, and nobody could get more without somebody who has
/// no more getting less.
pub fn max_min(capacity: f64, demands: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..demands.len()).collect();
    order.sort_by(|a, b| demands[*a].total_cmp(&demands[*b]));
    let mut left = capacity;
    let mut due = vec![0.0; demands.len()];
    for (served, &index) in order.iter().enumerate() {
        due[index] = demands[index].min(left / (demands.len() - served) as f64);
        left -= due[index];
    }
    due
}

#[cfg(test)]
mod tests {
    use super::max_min;

    #[test]
    fn small_demands_are_met_and_the_rest_is_divided_evenly() {
        assert_eq!(max_min(10.0, &[1.0, 100.0, 2.0, 50.0]), [1.0, 3.5, 2.0, 3.5]);
    }

    #[test]
    fn everybody_is_satisfied_where_there_is_enough() {
        assert_eq!(max_min(10.0, &[1.0, 3.0]), [1.0, 3.0]);
        assert_eq!(max_min(10.0, &[]), [0.0; 0]);
        assert_eq!(max_min(0.0, &[1.0]), [0.0]);
    }
}
