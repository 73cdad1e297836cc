"""Operations whose operands are on two devices."""
