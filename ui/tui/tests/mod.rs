pub mod made_up;
